import type { Hex } from "@fairlead/netfilter/nft";

import type { ElementChanges } from "./pool-changes.ts";
import type { SharedElement } from "./shared-elements.ts";

/** How many groups have an element that several may have in common. */
export class Tally {
  readonly #sets: Readonly<Record<SharedElement["set"], SharedSet>> = {
    "cluster-ips": new SharedSet(),
    "hairpin-connections": new SharedSet(),
  };

  count(elements: readonly SharedElement[], by: 1 | -1): void {
    for (const { set, key } of elements) this.#sets[set].count(key, by);
  }

  /** What came and went since the last time; a step for each. */
  *flush(to: ElementChanges): Generator<void> {
    for (const [set, shared] of Object.entries(this.#sets)) {
      for (const [key, there] of shared.moved()) {
        if (there) to.add(set, { key });
        else to.delete(set, key);
        yield;
      }
    }
  }
}

class SharedSet {
  readonly #counts = new Map<Hex, number>();
  /** How often each was there that was counted since the last time. */
  readonly #before = new Map<Hex, number>();

  count(key: Hex, by: 1 | -1): void {
    const before = this.#counts.get(key) ?? 0;
    if (!this.#before.has(key)) this.#before.set(key, before);
    if (before + by === 0) this.#counts.delete(key);
    else this.#counts.set(key, before + by);
  }

  *moved(): Generator<readonly [key: Hex, there: boolean]> {
    for (const [key, before] of this.#before) {
      const there = this.#counts.has(key);
      if (there !== before > 0) yield [key, there];
    }
    this.#before.clear();
  }
}
