import type { Clock } from "./clock.ts";
import { systemClock } from "./clock.ts";

/** Milliseconds of work after which others get their turn. */
const SLICE_MS = 10;

/**
 * One turn of the event loop: sockets, timers and signals that wait are served before it resolves. Browsers have no
 * `setImmediate`; their timers do the same, at the cost of some milliseconds.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === "function") setImmediate(resolve);
    else setTimeout(resolve);
  });
}

/** Gives a promise to await once the slice is used up, and undefined before. */
export type Yield = () => Promise<void> | undefined;

/** How long work may keep the processor before other work gets its turn. */
export interface Slicing {
  /** Real time by default, never a virtual one in production: it is the processor's time that others wait for. */
  readonly clock: Pick<Clock, "monotonic">;
  /** Milliseconds of work before the event loop gets its turn. */
  readonly budget: number;
  /** Gives the event loop its turn. */
  readonly turn: () => Promise<void>;
}

const DEFAULTS: Slicing = { clock: systemClock, budget: SLICE_MS, turn: nextTurn };

/** Keeps a long loop from blocking the event loop: `await yielding()` in each round. */
export function slices(settings: Partial<Slicing> = {}): Yield {
  const { clock, budget, turn } = { ...DEFAULTS, ...settings };
  let since = clock.monotonic();
  return () => {
    if (clock.monotonic() - since < budget) return undefined;
    return turn().then(() => {
      since = clock.monotonic();
    });
  };
}

/** Runs a stepped computation to its end without holding the event loop longer than the budget and one step. */
export async function inSlices<T>(steps: Iterator<unknown, T>, settings: Partial<Slicing> = {}): Promise<T> {
  const yielding = slices(settings);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    const turn = yielding();
    if (turn !== undefined) await turn;
  }
}

/** Runs a stepped computation to its end without a pause. */
export function toEnd<T>(steps: Iterator<unknown, T, void>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
