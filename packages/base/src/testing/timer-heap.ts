import { Heap } from "../heap.ts";

export interface Timer {
  /** When it is due. */
  readonly at: number;
  /** What it was set for. */
  readonly ms: number;
  readonly run: () => void;
  /** Counts from the first timer that was made. */
  readonly made: number;
}

/**
 * The timers of a virtual clock, in a heap: by the time when they are due, then by their making. A simulation of
 * thousands of agents has tens of thousands of them.
 */
export class TimerHeap {
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
