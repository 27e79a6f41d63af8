import type { ServiceKey } from "@fairlead/core";

/** Pairs in one block; twice as many split it. */
const BLOCK = 256;

interface Block<Key> {
  readonly keys: Key[];
  readonly services: ServiceKey[];
}

/** Pairs of an address and a service, in the order of addresses: in blocks, so that a change moves few of them. */
export class SortedPairs<Key extends number | bigint> {
  readonly #blocks: Block<Key>[] = [{ keys: [], services: [] }];

  add(key: Key, service: ServiceKey): void {
    const at = this.#blockOf(key);
    const block = this.#blocks[at];
    if (block === undefined) return;
    const place = firstNotBelow(block.keys, key);
    block.keys.splice(place, 0, key);
    block.services.splice(place, 0, service);
    if (block.keys.length < 2 * BLOCK) return;
    const upper = { keys: block.keys.splice(BLOCK), services: block.services.splice(BLOCK) };
    this.#blocks.splice(at + 1, 0, upper);
  }

  /** One such pair goes; nothing happens when there is none. */
  delete(key: Key, service: ServiceKey): void {
    for (let at = this.#blockOf(key); at < this.#blocks.length; at++) {
      const { keys, services } = this.#blocks[at] ?? EMPTY;
      let place = firstNotBelow(keys, key);
      while (keys[place] === key && services[place] !== service) place++;
      if (keys[place] === key) {
        keys.splice(place, 1);
        services.splice(place, 1);
        if (keys.length === 0 && this.#blocks.length > 1) this.#blocks.splice(at, 1);
        return;
      }
      // Pairs with this key may go on in the next block.
      if (place < keys.length) return;
    }
  }

  /** Calls `take` for each pair from `first` to `last`, both included. */
  between(first: Key, last: Key, take: (service: ServiceKey) => void): void {
    for (let at = this.#blockOf(first); at < this.#blocks.length; at++) {
      const { keys, services } = this.#blocks[at] ?? EMPTY;
      for (let place = firstNotBelow(keys, first); place < keys.length; place++) {
        const key = keys[place];
        const service = services[place];
        if (key === undefined || service === undefined || key > last) return;
        take(service);
      }
    }
  }

  /** The first block that may hold the key: the last one that begins below it. */
  #blockOf(key: Key): number {
    let low = 0;
    let high = this.#blocks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const first = this.#blocks[middle]?.keys[0];
      if (first !== undefined && first < key) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }
}

const EMPTY: Block<never> = { keys: [], services: [] };

function firstNotBelow<Key extends number | bigint>(keys: readonly Key[], limit: Key): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const key = keys[middle];
    if (key !== undefined && key < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
