import type { Clock } from "../time/clock.ts";
import { nextTurn } from "../time/turns.ts";
import { type Timer, TimerHeap } from "./timer-heap.ts";

/** A clock that stands still until `advance`. Timers fire in the order of their time, then of their making. */
export class VirtualClock implements Clock {
  #start: number;
  #elapsed = 0;
  readonly #timers = new TimerHeap();
  #expected: { readonly matches: (ms: number) => boolean; readonly found: (ms: number) => void }[] = [];

  /** @param start wall time at the beginning, milliseconds since the epoch */
  constructor(start = Date.UTC(2030, 0, 1)) {
    this.#start = start;
  }

  now(): number {
    return this.#start + this.#elapsed;
  }

  monotonic(): number {
    return this.#elapsed;
  }

  /** Sets the wall clock, as an administrator or NTP does: monotonic time and timers go on. */
  step(ms: number): void {
    this.#start += ms;
  }

  after(ms: number, run: () => void): () => void {
    const timer = this.#timers.add(this.#elapsed + Math.max(0, ms), ms, run);
    const met = this.#expected.filter(({ matches }) => matches(ms));
    this.#expected = this.#expected.filter((one) => !met.includes(one));
    for (const { found } of met) found(ms);
    return () => this.#timers.delete(timer);
  }

  /** Milliseconds that the timers which wait were set for, in the order of their making. */
  get pending(): readonly number[] {
    return this.#timers.inOrder().map(({ ms }) => ms);
  }

  /** Resolves with the milliseconds of a timer that matches, once there is one. */
  async timer(matches: (ms: number) => boolean): Promise<number> {
    return this.pending.find(matches) ?? new Promise((found) => this.#expected.push({ matches, found }));
  }

  /** Goes on by `ms` and fires what falls due; promises settle before and after each timer. */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsed + ms;
    await settled();
    for (let next = this.#earliest(end); next !== undefined; next = this.#earliest(end)) {
      this.#fire(next);
      await settled();
    }
    this.#elapsed = end;
  }

  /** As `advance`, at once: what waits for promises runs only after all timers. */
  advanceNow(ms: number): void {
    const end = this.#elapsed + ms;
    for (let next = this.#earliest(end); next !== undefined; next = this.#earliest(end)) this.#fire(next);
    this.#elapsed = end;
  }

  #fire(timer: Timer): void {
    this.#elapsed = Math.max(this.#elapsed, timer.at);
    this.#timers.delete(timer);
    timer.run();
  }

  #earliest(end: number): Timer | undefined {
    const first = this.#timers.first();
    return first !== undefined && first.at <= end ? first : undefined;
  }
}

/** Lets everything run that waits only for promises. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await nextTurn();
}
