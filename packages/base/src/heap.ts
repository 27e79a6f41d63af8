/** A binary heap: the first of many, with the others in no order. */
export class Heap<Item> {
  readonly #isBefore: (one: Item, other: Item) => boolean;
  readonly #items: Item[];

  /** @param sorted items in their order, with which it begins */
  constructor(isBefore: (one: Item, other: Item) => boolean, sorted: readonly Item[] = []) {
    this.#isBefore = isBefore;
    this.#items = [...sorted];
  }

  /** How many items the heap has. */
  get size(): number {
    return this.#items.length;
  }

  /** The item before all others; undefined in an empty heap. */
  get first(): Item | undefined {
    return this.#items[0];
  }

  /** Adds an item, in time logarithmic in the size. */
  push(item: Item): void {
    const items = this.#items;
    let at = items.push(item) - 1;
    for (let above = (at - 1) >> 1; at > 0; above = (at - 1) >> 1) {
      const parent = items[above];
      if (parent === undefined || !this.#isBefore(item, parent)) break;
      items[at] = parent;
      at = above;
    }
    items[at] = item;
  }

  /** Takes the first one away. */
  pop(): void {
    const items = this.#items;
    const last = items.pop();
    if (last === undefined || items.length === 0) return;
    let at = 0;
    for (let below = this.#earlier(1); ; below = this.#earlier(2 * at + 1)) {
      const child = items[below];
      if (child === undefined || !this.#isBefore(child, last)) break;
      items[at] = child;
      at = below;
    }
    items[at] = last;
  }

  /** Of two neighbors the place of the one that comes first. */
  #earlier(left: number): number {
    const [one, other] = [this.#items[left], this.#items[left + 1]];
    return one !== undefined && other !== undefined && this.#isBefore(other, one) ? left + 1 : left;
  }
}
