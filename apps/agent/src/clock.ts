/** Time as a parameter: production takes `systemClock`, tests one that they turn themselves. */
export interface Clock {
  /** Wall time, milliseconds since the epoch: for timestamps that people and metrics read. */
  now(): number;
  /** Milliseconds that never jump: for intervals and durations. */
  monotonic(): number;
  /** Calls `run` once after at least `ms` milliseconds; the result cancels that. Keeps the process alive. */
  after(ms: number, run: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms`, or as soon as `signal` aborts. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal?.aborted) return Promise.resolve();
  const cancel = clock.after(ms, resolve);
  signal?.addEventListener("abort", () => {
    cancel();
    resolve();
  });
  return promise;
}
