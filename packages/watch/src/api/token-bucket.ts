import { type Clock, sleep } from "@fairlead/base";

/** Resolves when the caller may send one request; those who wait are served in order. */
export type TakeToken = (signal: AbortSignal) => Promise<void>;

/**
 * clientConnection's qps and burst, as client-go's flow control: `burst` requests at once, then `qps` a second.
 *
 * @param qps requests a second; below zero: no limit, as in client-go
 */
export function tokenBucket(clock: Clock, qps: number, burst: number): TakeToken {
  if (qps < 0) return () => Promise.resolve();
  const capacity = Math.max(1, burst);
  let tokens = capacity;
  let at = clock.monotonic();
  return (signal) => {
    const now = clock.monotonic();
    tokens = Math.min(capacity, tokens + ((now - at) / 1000) * qps) - 1;
    at = now;
    // Below zero a token is promised that comes only later.
    return tokens >= 0 ? Promise.resolve() : sleep(clock, (-tokens / qps) * 1000, signal);
  };
}
