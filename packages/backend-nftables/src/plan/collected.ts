import type { Hex, NftBatch, SetElement } from "@fairlead/netfilter/nft";
import { IN_ONE_MESSAGE } from "./element-buffers.ts";
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

  /** A step for each message. */
  *writeDeleted(to: NftBatch): Generator<void> {
    for (const [set, keys] of this.#deleted) {
      for (const some of pieces(keys)) {
        to.deleteElements(set, some);
        yield;
      }
    }
  }

  /** A step for each message. */
  *writeAdded(to: NftBatch): Generator<void> {
    for (const [set, elements] of this.#added) {
      for (const some of pieces(elements)) {
        to.addElements(set, some);
        yield;
      }
    }
  }
}

function* pieces<T>(list: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < list.length; at += IN_ONE_MESSAGE) yield list.slice(at, at + IN_ONE_MESSAGE);
}
