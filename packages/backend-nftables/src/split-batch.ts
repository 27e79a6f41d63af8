import {
  NftBatch,
  type NftChain,
  type NftFlowtable,
  type NftRule,
  type NftSet,
  type SetElement,
} from "@fairlead/netfilter/nft";
import { beginTable, type TableWriter, type Titled } from "./plan/table-writer.ts";
import type { NftablesPort } from "./port.ts";

/**
 * A table that is made anew, in one transaction where there is room for it: then no reader sees anything between the
 * old one and the new one. In a user namespace there may be too little; it goes in several then, each of at most half
 * the room, so that the message that comes last still fits.
 */
export class SplitBatch implements TableWriter {
  readonly #port: Pick<NftablesPort, "roomFor">;
  readonly #titled: Titled;
  readonly #full: NftBatch[] = [];
  #last: NftBatch;
  #room: number;

  /** @param size bytes that the whole will have, about */
  constructor(port: Pick<NftablesPort, "roomFor">, titled: Titled, size: number) {
    this.#port = port;
    this.#titled = titled;
    this.#room = port.roomFor(size);
    this.#last = new NftBatch(titled.family, titled.table, Math.min(size, this.#room));
    beginTable(this.#last, titled);
  }

  addSet(set: Omit<NftSet, "elements">): void {
    this.#roomy().addSet(set);
  }

  addChain(chain: Pick<NftChain, "name" | "base" | "comment">): void {
    this.#roomy().addChain(chain);
  }

  addRule(chain: string, rule: NftRule): void {
    this.#roomy().addRule(chain, rule);
  }

  addFlowtable(flowtable: NftFlowtable): void {
    this.#roomy().addFlowtable(flowtable);
  }

  addElements(set: string, elements: Iterable<SetElement>): void {
    this.#roomy().addElements(set, elements);
  }

  /** Those that can be carried out, once each. */
  *takeFull(): Generator<NftBatch> {
    for (let batch = this.#full.shift(); batch !== undefined; batch = this.#full.shift()) yield batch;
  }

  /** What comes last. */
  get last(): NftBatch {
    return this.#last;
  }

  #roomy(): NftBatch {
    const { length } = this.#last;
    if (2 * length <= this.#room) return this.#last;
    this.#room = this.#port.roomFor(4 * length);
    if (2 * length <= this.#room) return this.#last;
    this.#full.push(this.#last);
    this.#last = new NftBatch(this.#titled.family, this.#titled.table, this.#room);
    return this.#last;
  }
}
