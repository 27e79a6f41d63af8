import { nextTurn } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";

/** Carries signs of progress from the depth of syncs, which knows nothing of health, to their followers. */
export class Progress {
  #notify: (family: IPFamily) => void = () => {};

  follow(onProgress: (family: IPFamily) => void): void {
    this.#notify = onProgress;
  }

  /** What a backend of the family calls between steps: a turn for the event loop, and a sign that it gets on. */
  turnOf(family: IPFamily): () => Promise<void> {
    return () => {
      this.#notify(family);
      return nextTurn();
    };
  }
}
