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
 * The timers of a virtual clock, as a binary heap: by the time when they are due, then by their making. A simulation of
 * thousands of agents has tens of thousands of them.
 */
export class TimerHeap {
  /** With those that were deleted, until they come to the top. */
  readonly #heap: Timer[] = [];
  readonly #alive = new Set<Timer>();
  #made = 0;

  add(at: number, ms: number, run: () => void): Timer {
    const timer = { at, ms, run, made: this.#made++ };
    this.#alive.add(timer);
    this.#heap.push(timer);
    this.#rise(this.#heap.length - 1);
    return timer;
  }

  /** @returns whether it was there */
  delete(timer: Timer): boolean {
    return this.#alive.delete(timer);
  }

  /** The one that is due first. */
  first(): Timer | undefined {
    for (let [top] = this.#heap; top !== undefined; [top] = this.#heap) {
      if (this.#alive.has(top)) return top;
      this.#removeTop();
    }
    return undefined;
  }

  /** All of them, in the order of their making. */
  inOrder(): readonly Timer[] {
    return [...this.#alive];
  }

  #removeTop(): void {
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#sink();
  }

  #rise(from: number): void {
    for (let at = from; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (!this.#swapIfLater(parent, at)) return;
      at = parent;
    }
  }

  #sink(): void {
    for (let at = 0; ; ) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      const child = this.#isBefore(right, left) ? right : left;
      if (!this.#swapIfLater(at, child)) return;
      at = child;
    }
  }

  #swapIfLater(parent: number, child: number): boolean {
    const [above, below] = [this.#heap[parent], this.#heap[child]];
    if (above === undefined || below === undefined || !this.#isBefore(child, parent)) return false;
    this.#heap[parent] = below;
    this.#heap[child] = above;
    return true;
  }

  #isBefore(a: number, b: number): boolean {
    const [one, other] = [this.#heap[a], this.#heap[b]];
    if (one === undefined || other === undefined) return false;
    return one.at < other.at || (one.at === other.at && one.made < other.made);
  }
}
