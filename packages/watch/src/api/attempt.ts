import type { Clock } from "@fairlead/base";

/** A watch that ends sooner, with nothing in it, has failed. */
const SHORTEST_WATCH = 1_000;

/** A request under way. */
export class Attempt {
  /** The server said 200. */
  opened = false;
  /** It brought the cursor on. */
  progressed = false;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #began: number;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
    this.#began = clock.monotonic();
  }

  /** Milliseconds since it was sent. */
  elapsed(): number {
    return this.#clock.monotonic() - this.#began;
  }

  /** As a watch it did its work, for a while at least. */
  worked(): boolean {
    return this.opened && (this.progressed || this.elapsed() >= SHORTEST_WATCH);
  }
}
