/** A clock that waits, in milliseconds. Tests pass one that they turn themselves. */
export interface Timers {
  /** Never goes back. */
  now(): number;
  /** Calls `run` once after at least `ms`; the result cancels that. */
  after(ms: number, run: () => void): () => void;
}

export const systemTimers: Timers = {
  now: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
