import {
  elementKey,
  type NftBatch,
  type NftChain,
  type NftFlowtable,
  type NftRule,
  type NftSet,
  type NftTable,
  type SetElement,
} from "@fairlead/netfilter/nft";
import type { PlanContext } from "./context.ts";

/** What a table is written into: a batch, or a table in memory. `NftBatch` fits. */
export interface TableWriter {
  addSet(set: Omit<NftSet, "elements">): unknown;
  /** Without its rules. */
  addChain(chain: Pick<NftChain, "name" | "base" | "comment">): unknown;
  addRule(chain: string, rule: NftRule): unknown;
  addFlowtable(flowtable: NftFlowtable): unknown;
  addElements(set: string, elements: Iterable<SetElement>): unknown;
}

/** What a table is called, and whose it is. */
export type Titled = Pick<PlanContext, "family" | "table" | "beside">;

/** kube-proxy's comment on its table, or one that tells ours from it. */
function commentOf({ table, beside }: Titled): string {
  return beside ? `rules for ${table}, beside kube-proxy` : "rules for kube-proxy";
}

/** Has the table made anew, whatever is there, in the transaction. */
export function beginTable(batch: NftBatch, titled: Titled): void {
  batch.addTable().deleteTable().addTable(commentOf(titled));
}

/** A table that is written in memory. */
export class TableInMemory implements TableWriter {
  readonly #chains = new Map<string, NftChain & { readonly rules: NftRule[] }>();
  readonly #sets = new Map<string, NftSet & { readonly elements: Map<string, SetElement> }>();

  readonly #flowtables = new Map<string, NftFlowtable>();
  readonly #titled: Titled;

  constructor(titled: Titled) {
    this.#titled = titled;
  }

  addSet(set: Omit<NftSet, "elements">): void {
    this.#sets.set(set.name, { ...set, elements: new Map() });
  }

  addChain({ name, base, comment }: Pick<NftChain, "name" | "base" | "comment">): void {
    this.#chains.set(name, { name, ...(base && { base }), ...(comment !== undefined && { comment }), rules: [] });
  }

  addRule(chain: string, rule: NftRule): void {
    this.#chains.get(chain)?.rules.push(rule);
  }

  addElements(set: string, elements: Iterable<SetElement>): void {
    for (const element of elements) this.#sets.get(set)?.elements.set(elementKey(element), element);
  }

  addFlowtable(flowtable: NftFlowtable): void {
    this.#flowtables.set(flowtable.name, flowtable);
  }

  table(): NftTable {
    const { family, table: name } = this.#titled;
    const flowtables = this.#flowtables;
    return {
      family,
      name,
      comment: commentOf(this.#titled),
      chains: this.#chains,
      sets: this.#sets,
      ...(flowtables.size > 0 && { flowtables }),
    };
  }
}
