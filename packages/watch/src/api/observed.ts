import type { Clock } from "@fairlead/base";
import type { TakeToken } from "./token-bucket.ts";
import type { Transport } from "./transport.ts";

/** A request that was answered, or that waited for its turn, for metrics. */
export interface RequestFacts {
  /** The method of the request. */
  readonly method: "GET" | "POST";
  /** Of the API server, with its port. */
  readonly host: string;
  /** Until its answer began, or until its turn came. */
  readonly milliseconds: number;
}

/** Is notified of requests to the API server, for metrics. */
export interface RequestObserver {
  /** The head of an answer is there, or (no code) there will be none. */
  answered(request: RequestFacts & { readonly code: number | undefined; readonly watch: boolean }): void;
  /** A request had its turn after this long. */
  waited(request: RequestFacts): void;
}

export interface Observing {
  readonly observer: RequestObserver;
  readonly host: string;
  readonly clock: Clock;
}

export function observedTransport(transport: Transport, { observer, host, clock }: Observing): Transport {
  return async (request) => {
    const began = clock.monotonic();
    const watch = request.path.includes("watch=true");
    const answered = (code: number | undefined) =>
      observer.answered({ method: "GET", host, code, watch, milliseconds: clock.monotonic() - began });
    try {
      const response = await transport(request);
      answered(response.status);
      return response;
    } catch (error) {
      answered(undefined);
      throw error;
    }
  };
}

export function observedTokens(takeToken: TakeToken, { observer, host, clock }: Observing): TakeToken {
  return async (signal) => {
    const began = clock.monotonic();
    await takeToken(signal);
    observer.waited({ method: "GET", host, milliseconds: clock.monotonic() - began });
  };
}
