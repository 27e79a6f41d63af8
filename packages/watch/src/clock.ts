/** Time as a parameter: tests pass a virtual one. Milliseconds, monotonic, of no particular origin. */
export interface Clock {
  now(): number;
  /** Calls `run` once after `milliseconds`; the result cancels it. */
  after(milliseconds: number, run: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  after: (milliseconds, run) => {
    const timer = setTimeout(run, milliseconds);
    return () => clearTimeout(timer);
  },
};

/** Resolves after `milliseconds`, or as soon as `signal` aborts; never rejects, the caller looks at the signal. */
export function sleep(clock: Clock, milliseconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted || milliseconds <= 0) return Promise.resolve();
  return new Promise((resolve) => {
    const wake = () => {
      cancel();
      signal.removeEventListener("abort", wake);
      resolve();
    };
    const cancel = clock.after(milliseconds, wake);
    signal.addEventListener("abort", wake);
  });
}
