import type { Clock } from "../../src/clock.ts";

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** A clock that stands still until `advance`; timers fire in the order of their time, then of their making. */
export class VirtualClock implements Clock {
  #now: number;
  #order = 0;
  readonly #start: number;
  readonly #timers = new Set<Timer>();

  constructor(start = Date.UTC(2030, 0, 1)) {
    this.#start = start;
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now - this.#start;
  }

  after(ms: number, run: () => void): () => void {
    const timer: Timer = { at: this.#now + Math.max(0, ms), order: this.#order++, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Timers that wait. */
  get waiting(): number {
    return this.#timers.size;
  }

  /** Goes on by `ms`, firing what falls due, and lets promises settle before and after each timer. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (let next = this.#due(end); next !== undefined; next = this.#due(end)) {
      this.#now = Math.max(this.#now, next.at);
      this.#timers.delete(next);
      next.run();
      await settle();
    }
    this.#now = end;
  }

  #due(end: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.at > end) continue;
      if (first === undefined || timer.at < first.at || (timer.at === first.at && timer.order < first.order)) {
        first = timer;
      }
    }
    return first;
  }
}

/** Lets everything run that waits for nothing but promises or the next turn of the event loop. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}
