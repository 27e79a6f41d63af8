import { nextTurn } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";

/** Carries signs of progress from the depth of syncs, where nobody knows of health, to whoever follows them. */
export class Progress {
  #told: (family: IPFamily) => void = () => {};

  follow(told: (family: IPFamily) => void): void {
    this.#told = told;
  }

  /** What a backend of the family calls between steps: a turn for the event loop, and a sign that it gets on. */
  breathe(family: IPFamily): () => Promise<void> {
    return () => {
      this.#told(family);
      return nextTurn();
    };
  }
}
