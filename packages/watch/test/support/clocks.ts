import type { Clock } from "../../src/clock.ts";

interface Timer {
  readonly at: number;
  readonly delay: number;
  readonly run: () => void;
}

/** Time that passes when the test says so. */
export class VirtualClock implements Clock {
  #now = 0;
  readonly #timers = new Set<Timer>();
  #waiting: { matches: (delay: number) => boolean; wake: (delay: number) => void }[] = [];

  now(): number {
    return this.#now;
  }

  after(delay: number, run: () => void): () => void {
    const timer = { at: this.#now + delay, delay, run };
    this.#timers.add(timer);
    const woken = this.#waiting.filter(({ matches }) => matches(delay));
    this.#waiting = this.#waiting.filter((one) => !woken.includes(one));
    for (const { wake } of woken) wake(delay);
    return () => this.#timers.delete(timer);
  }

  /** Resolves with the delay of a pending or coming timer that matches. */
  async timer(matches: (delay: number) => boolean): Promise<number> {
    const pending = [...this.#timers].find((timer) => matches(timer.delay));
    return pending?.delay ?? new Promise((wake) => this.#waiting.push({ matches, wake }));
  }

  /** Delays of the timers that are set. */
  get pending(): readonly number[] {
    return [...this.#timers].map((timer) => timer.delay);
  }

  advance(milliseconds: number): void {
    const end = this.#now + milliseconds;
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      this.#timers.delete(next);
      this.#now = next.at;
      next.run();
    }
    this.#now = end;
  }

  #next(end: number): Timer | undefined {
    const due = [...this.#timers].filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at);
    return due[0];
  }
}

/** Connecting, asking for a sign of life, silence, reports, watchdogs, and what the server doesn't have. */
const neverOut: ReadonlySet<number> = new Set([10_000, 15_000, 30_000, 60_000, 65_000, 90_000, 600_000]);

/** Back-offs take no time; other timers never run out. */
export function instantClock(): Clock {
  let now = 0;
  return {
    now: () => now,
    after: (delay, run) => {
      if (neverOut.has(delay)) return () => {};
      now += delay;
      const immediate = setImmediate(run);
      return () => clearImmediate(immediate);
    },
  };
}
