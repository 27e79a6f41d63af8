/** The part of a clock that waits. Any clock with `after` fits; tests pass one that they turn themselves. */
export interface Timers {
  /** Calls `run` once after at least `ms` milliseconds; the result cancels that. */
  after(ms: number, run: () => void): () => void;
}

export const systemTimers: Timers = {
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms`, or as soon as `signal` aborts. */
export function sleep(timers: Timers, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const wake = () => {
      cancel();
      signal?.removeEventListener("abort", wake);
      resolve();
    };
    const cancel = timers.after(ms, wake);
    signal?.addEventListener("abort", wake);
  });
}
