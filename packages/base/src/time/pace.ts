import type { Clock } from "./clock.ts";

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
