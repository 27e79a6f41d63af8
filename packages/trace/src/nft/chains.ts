import type { IPFamily } from "@fairlead/netfilter";
import { type BaseChain, IP_FAMILY, type NftTable } from "@fairlead/netfilter/nft";
import type { Hook } from "../packet.ts";
import type { TableName } from "../table-name.ts";
import type { Chain } from "../walk.ts";
import { NftRuleChain } from "./rule-chain.ts";
import { NftSets } from "./sets.ts";

/** A base chain with what says when it is asked. */
export interface BaseStage {
  readonly name: TableName;
  readonly base: BaseChain;
  readonly chain: Chain;
}

/** The chains of one table of nftables, prepared when a packet first reaches them. */
export class NftChains {
  readonly #table: NftTable;
  readonly #sets: NftSets;
  readonly #chains = new Map<string, Chain>();

  constructor(table: NftTable) {
    this.#table = table;
    this.#sets = new NftSets(table);
  }

  /** Those that packets of the family come to at a hook, in the order of the table. */
  bases(family: IPFamily, hook: Hook): readonly BaseStage[] {
    const { family: own, name, chains } = this.#table;
    if (IP_FAMILY[own] !== family) return [];
    return Array.from(chains.values()).flatMap(({ name: chainName, base }) => {
      const chain = base?.hook === hook.toLowerCase() ? this.#chain(chainName) : undefined;
      return chain === undefined || base === undefined ? [] : [{ name: `${own} ${name}` as const, base, chain }];
    });
  }

  #chain(name: string): Chain | undefined {
    const known = this.#chains.get(name);
    if (known !== undefined) return known;
    const found = this.#table.chains.get(name);
    if (found === undefined) return undefined;
    const chain = new NftRuleChain(this.#table, found, this.#sets, (other) => this.#chain(other));
    this.#chains.set(name, chain);
    return chain;
  }
}
