import type { Selection } from "../sources/source.ts";

/** Which groups of a source's objects count, as the objects of its selection say. */
export class Selected {
  readonly #selection: Selection;
  readonly #byObject = new Map<string, string>();
  #groups: ReadonlySet<string> = new Set();

  constructor(selection: Selection) {
    this.#selection = selection;
  }

  /** @returns whether other groups are selected than before */
  set(object: string, raw: unknown): boolean {
    const group = this.#selection.read(raw);
    if (group === this.#byObject.get(object)) return false;
    if (group === undefined) this.#byObject.delete(object);
    else this.#byObject.set(object, group);
    return this.#made();
  }

  /** @returns whether other groups are selected than before */
  delete(object: string): boolean {
    return this.#byObject.delete(object) && this.#made();
  }

  clear(): void {
    this.#byObject.clear();
    this.#made();
  }

  counts(group: string): boolean {
    return this.#selection.counts(group, this.#groups);
  }

  #made(): boolean {
    const before = this.#groups;
    this.#groups = new Set(this.#byObject.values());
    return before.size !== this.#groups.size || [...before].some((group) => !this.#groups.has(group));
  }
}
