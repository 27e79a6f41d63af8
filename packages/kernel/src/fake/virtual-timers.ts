import type { Timers } from "@fairlead/base";

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

/** Time that stands still until `advance`. Timers fire in the order of their time, then of their making. */
export class VirtualTimers implements Timers {
  #now = 0;
  readonly #timers = new Set<Timer>();

  /** Milliseconds that were advanced so far. */
  get now(): number {
    return this.#now;
  }

  after(ms: number, run: () => void): () => void {
    const timer: Timer = { at: this.#now + Math.max(0, ms), run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Goes on by `ms` and fires what falls due; what waits for promises alone runs before and after each timer. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settled();
    for (let next = this.#earliest(end); next !== undefined; next = this.#earliest(end)) {
      this.#now = Math.max(this.#now, next.at);
      this.#timers.delete(next);
      next.run();
      await settled();
    }
    this.#now = end;
  }

  #earliest(end: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.at <= end && (first === undefined || timer.at < first.at)) first = timer;
    }
    return first;
  }
}

/** Lets everything run that waits for promises only. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
