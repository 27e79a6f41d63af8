import type { SharedElement } from "./group-parts.ts";
import type { ElementChanges } from "./pool-changes.ts";

/** How many groups have an element that several may have in common. */
export class Tally {
  readonly #counts = new Map<string, number>();
  readonly #moved = new Map<string, { readonly element: SharedElement; readonly before: number }>();

  count(elements: readonly SharedElement[], by: 1 | -1): void {
    for (const element of elements) {
      const id = `${element.set} ${element.key}`;
      const before = this.#counts.get(id) ?? 0;
      if (!this.#moved.has(id)) this.#moved.set(id, { element, before });
      if (before + by === 0) this.#counts.delete(id);
      else this.#counts.set(id, before + by);
    }
  }

  /** What came and went since the last time. */
  flush(to: ElementChanges): void {
    for (const [id, { element, before }] of this.#moved) {
      const there = this.#counts.has(id);
      if (there && before === 0) to.add(element.set, { key: element.key });
      if (!there && before > 0) to.delete(element.set, element.key);
    }
    this.#moved.clear();
  }
}
