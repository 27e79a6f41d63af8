import type { Clock } from "@fairlead/base";
import { BrokenResponseError } from "./errors.ts";

/** Ends a request when it is left watching for too long at a stretch, or when it is asked to. */
export interface Watchdog {
  readonly seconds: number;
  watch(): void;
  rest(): void;
  /** Ends the request because of `error`. */
  bite(error: Error): void;
  /** The error that the request was ended for; undefined: it was not. @param idle what to say of too long a wait */
  why(idle: string): Error | undefined;
}

/** @param end ends the request */
export function watchdog(clock: Clock, milliseconds: number, end: () => void): Watchdog {
  let cancel: (() => void) | undefined;
  let bitten: Error | "idle" | undefined;
  const rest = () => {
    cancel?.();
    cancel = undefined;
  };
  const biteFor = (reason: Error | "idle") => {
    bitten ??= reason;
    end();
  };
  const watch = () => {
    rest();
    cancel = clock.after(milliseconds, () => biteFor("idle"));
  };
  const why = (idle: string) => (bitten === "idle" ? new BrokenResponseError(idle) : bitten);
  return { seconds: milliseconds / 1000, watch, rest, bite: biteFor, why };
}
