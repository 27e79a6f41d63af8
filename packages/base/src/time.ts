/** Clocks, waiting, and long work in turns of the event loop. */

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

/**
 * Resolves after `ms` milliseconds (at once where that is 0 or less), or as soon as `signal` aborts; never rejects, the
 * caller looks at the signal.
 */
export function sleep(timers: Timers, ms: number, signal?: AbortSignal): Promise<void> {
  if (ms <= 0 || signal?.aborted === true) return Promise.resolve();
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

/** Keeps work that is done again and again at a share of the time, however long it takes. */
export class Pace {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #share: number;
  #notBefore = Number.NEGATIVE_INFINITY;

  /** @param share of the time that the work may take, more than 0 and at most 1 */
  constructor(clock: Pick<Clock, "monotonic">, share: number) {
    this.#clock = clock;
    this.#share = share;
  }

  /** Whether enough time has passed since the last piece of work to begin the next one. */
  get isDue(): boolean {
    return this.#clock.monotonic() >= this.#notBefore;
  }

  /** Does the work now; what it took decides when it is due again. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const began = this.#clock.monotonic();
    try {
      return await work();
    } finally {
      const ended = this.#clock.monotonic();
      this.#notBefore = ended + (ended - began) * (1 / this.#share - 1);
    }
  }
}

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

/** Milliseconds of work after which others get their turn. */
const SLICE_MS = 10;

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
