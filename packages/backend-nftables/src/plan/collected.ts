import type { Hex, NftBatch, SetElement } from "@fairlead/netfilter/nft";
import type { ElementChanges } from "./pool-changes.ts";

/** Elements that come and go, gathered by their set until all are known. */
export class Collected implements ElementChanges {
  readonly #deleted = new Map<string, Hex[]>();
  readonly #added = new Map<string, SetElement[]>();

  add(set: string, element: SetElement): void {
    const list = this.#added.get(set);
    if (list === undefined) this.#added.set(set, [element]);
    else list.push(element);
  }

  delete(set: string, key: Hex): void {
    const list = this.#deleted.get(set);
    if (list === undefined) this.#deleted.set(set, [key]);
    else list.push(key);
  }

  /** How many come. */
  get added(): number {
    let sum = 0;
    for (const list of this.#added.values()) sum += list.length;
    return sum;
  }

  writeDeleted(to: NftBatch): void {
    for (const [set, keys] of this.#deleted) to.deleteElements(set, keys);
  }

  writeAdded(to: NftBatch): void {
    for (const [set, elements] of this.#added) to.addElements(set, elements);
  }
}
