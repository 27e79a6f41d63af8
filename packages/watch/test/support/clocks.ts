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

/** Back-offs without jitter, less than half a minute, take no time. Other timers never run out: connecting, watchdogs, reports. */
export function instantClock(): Clock {
  let now = 0;
  return {
    now: () => now,
    after: (delay, run) => {
      if (delay >= 30_000 || delay === 10_000) return () => {};
      now += delay;
      const immediate = setImmediate(run);
      return () => clearImmediate(immediate);
    },
  };
}
