import type { Clock } from "@fairlead/base";
import { errorText } from "@fairlead/base";
import type { ResourceName } from "../change.ts";
import { MalformedError } from "../protobuf/read-message.ts";
import type { OnReport, RequestProblem } from "../report.ts";
import { ApiError, ProtocolError } from "./errors.ts";

/** What the resources' loops tell of their requests, brought together into one report a minute. */
export interface Reachability {
  succeeded(resource: ResourceName): void;
  failed(resource: ResourceName, error: unknown): void;
  stop(): void;
}

const REPORT_EVERY = 60_000;

const FURTHEST_FIRST = ["unreadable", "refused"] as const satisfies readonly RequestProblem[];

function problemOf(error: unknown): RequestProblem {
  if (error instanceof ApiError) return "refused";
  return error instanceof ProtocolError || error instanceof MalformedError ? "unreadable" : "unreachable";
}

/** @param server base URL of the API server */
export function reachability(clock: Clock, server: string, onReport: OnReport): Reachability {
  const address = new URL(server).hostname.replace(/^\[|\]$/g, "");
  const failing = new Map<ResourceName, { readonly error: string; readonly problem: RequestProblem }>();
  let since = 0;
  let cancel = () => {};

  const report = () => {
    const all = [...failing.values()];
    const error = [...new Set(all.map((one) => one.error))].join("; ");
    const problem = FURTHEST_FIRST.find((one) => all.some((other) => other.problem === one)) ?? "unreachable";
    const milliseconds = clock.monotonic() - since;
    onReport({ type: "failing", problem, server, address, milliseconds, error, resources: [...failing.keys()] });
    cancel = clock.after(REPORT_EVERY, report);
  };
  return {
    failed: (resource, error) => {
      const began = failing.size === 0;
      failing.set(resource, { error: errorText(error), problem: problemOf(error) });
      if (!began) return;
      since = clock.monotonic();
      report();
    },
    succeeded: (resource) => {
      if (!failing.delete(resource) || failing.size > 0) return;
      cancel();
      onReport({ type: "recovered", server, milliseconds: clock.monotonic() - since });
    },
    stop: () => cancel(),
  };
}
