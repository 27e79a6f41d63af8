/** Waits: the part of a clock that most need. */
export interface Timers {
  /** Calls `run` once after at least `ms` milliseconds; the result cancels that. Keeps the process alive. */
  after(ms: number, run: () => void): () => void;
}

/** Time as a parameter: production takes `systemClock`, tests the one of `@fairlead/base/testing`. */
export interface Clock extends Timers {
  /** Wall time, milliseconds since the epoch: for timestamps that people and metrics read. */
  now(): number;
  /** Milliseconds that never jump: for intervals and durations. */
  monotonic(): number;
}

/** The clock of this machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};
