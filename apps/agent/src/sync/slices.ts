import type { Clock } from "../clock.ts";

/** Milliseconds of work before the event loop gets its turn. */
export const sliceBudget = 10;

export interface Slicing {
  readonly clock: Pick<Clock, "monotonic">;
  /** Milliseconds of work before the event loop gets its turn. */
  readonly budget: number;
  /** Gives the event loop its turn. */
  readonly pause: () => Promise<void>;
}

/** Runs a stepped computation to its end without holding the event loop longer than the budget and one step. */
export async function inSlices<T>(steps: Iterator<unknown, T>, slicing: Slicing): Promise<T> {
  for (;;) {
    const until = slicing.clock.monotonic() + slicing.budget;
    do {
      const step = steps.next();
      if (step.done) return step.value;
    } while (slicing.clock.monotonic() < until);
    await slicing.pause();
  }
}

/** One turn of the event loop: sockets, timers and signals that wait are served before it resolves. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
