/** A clock that tests set. */

import { Heap } from "../heap.ts";
import { type Clock, nextTurn } from "../time.ts";

interface Timer {
  readonly at: number;
  readonly ms: number;
  readonly run: () => void;
  /** Counts from the first timer that was made. */
  readonly made: number;
}

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

/**
 * The timers of a virtual clock, in a heap: by the time when they are due, then by their making. A simulation of
 * thousands of agents has tens of thousands of them.
 */
class TimerHeap {
  /** With those that were deleted, until they come to the top. */
  readonly #heap = new Heap(isBefore);
  readonly #alive = new Set<Timer>();
  #made = 0;

  add(at: number, ms: number, run: () => void): Timer {
    const timer = { at, ms, run, made: this.#made++ };
    this.#alive.add(timer);
    this.#heap.push(timer);
    return timer;
  }

  /** @returns whether it was there */
  delete(timer: Timer): boolean {
    return this.#alive.delete(timer);
  }

  /** The one that is due first. */
  first(): Timer | undefined {
    for (let top = this.#heap.first; top !== undefined; top = this.#heap.first) {
      if (this.#alive.has(top)) return top;
      this.#heap.pop();
    }
    return undefined;
  }

  /** All of them, in the order of their making. */
  inOrder(): readonly Timer[] {
    return [...this.#alive];
  }
}

function isBefore(one: Timer, other: Timer): boolean {
  return one.at < other.at || (one.at === other.at && one.made < other.made);
}
