import type { Clock } from "@fairlead/base";

/** A clock on which a wait takes no time but its own: for code that does one thing after the other. */
export class InstantClock implements Clock {
  #elapsed = 0;

  now(): number {
    return this.#elapsed;
  }

  monotonic(): number {
    return this.#elapsed;
  }

  after(ms: number, run: () => void): () => void {
    this.#elapsed += ms;
    queueMicrotask(run);
    return () => {};
  }
}
