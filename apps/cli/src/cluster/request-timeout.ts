import { parseDuration } from "@fairlead/config";
import { UsageError } from "../frame/errors.ts";
import type { ClusterAccess } from "./access.ts";

/**
 * What `--request-timeout` says, as kubectl reads it: `5s`, `1m30s`, or whole seconds.
 *
 * @returns milliseconds; `Infinity` for 0; undefined: it is not given
 * @throws UsageError naming what would be right
 */
export function requestTimeoutOf({ "request-timeout": text }: ClusterAccess): number | undefined {
  if (text === undefined) return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : parseDuration(text);
  if (ms !== undefined && ms >= 0 && ms <= LONGEST_MS) return ms === 0 ? Number.POSITIVE_INFINITY : ms;
  throw new UsageError(`--request-timeout=${text}: must be a time such as 5s, 1m or 30 (seconds); 0 means no limit`);
}

/** What timers take. */
const LONGEST_MS = 2 ** 31 - 1;

/** Aborts when a request took too long; undefined: none is too long. */
export function signalWithin(ms: number): AbortSignal | undefined {
  return ms === Number.POSITIVE_INFINITY ? undefined : AbortSignal.timeout(Math.ceil(ms));
}
