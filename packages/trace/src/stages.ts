import type { IPFamily, RuleSet, Table } from "@fairlead/netfilter";
import type { BaseChain, NftTable } from "@fairlead/netfilter/nft";
import { CompiledRuleSet } from "./iptables-chain.ts";
import { NftChains } from "./nft/chains.ts";
import type { Hook, Rules, TableName } from "./packet.ts";
import type { Chain, StageFacts } from "./walk.ts";

/** Where a packet is asked about at a hook. */
export interface StageAt extends StageFacts {
  /** Its first chain; undefined: there is none, or the stage is ip_vs. */
  readonly chain: Chain | undefined;
}

type Builtin = readonly [stage: Table | "ipvs", priority: number];

/** The tables of each hook with their priorities (linux/netfilter_ipv4.h), and ip_vs among them (ip_vs_ops). */
const BUILT_IN: Readonly<Record<Hook, readonly Builtin[]>> = {
  PREROUTING: [
    ["raw", -300],
    ["mangle", -150],
    ["nat", -100],
  ],
  INPUT: [
    ["mangle", -150],
    ["filter", 0],
    ["security", 50],
    ["ipvs", 98],
    ["nat", 100],
  ],
  FORWARD: [
    ["mangle", -150],
    ["filter", 0],
    ["security", 50],
  ],
  OUTPUT: [
    ["raw", -300],
    ["mangle", -150],
    ["nat", -100],
    ["ipvs", -99],
    ["filter", 0],
    ["security", 50],
  ],
  POSTROUTING: [
    ["mangle", -150],
    ["nat", 100],
  ],
};

const CONNTRACK = -200;

/** A stage with what decides its turn. */
interface Ordered {
  readonly stage: StageAt;
  /** All nat chains of a hook are asked from one place, whatever their own priorities (nf_nat_inet_fn). */
  readonly place: number;
  readonly priority: number;
}

/**
 * The stages of each hook in the order in which the kernel asks them. Of one priority the one that was registered last
 * is first (nf_hook_entries_grow): iptables counts as the first of all, and the tables of nftables are in the order in
 * which they were made.
 */
export class Stages {
  readonly #iptables: CompiledRuleSet;
  readonly #nftables: readonly NftChains[];
  readonly #known = { IPv4: new Map<Hook, readonly StageAt[]>(), IPv6: new Map<Hook, readonly StageAt[]>() };

  constructor(rules: RuleSet | Rules) {
    const { iptables = new Map(), nftables = [] } = "forEach" in rules ? { iptables: rules } : rules;
    this.#iptables = new CompiledRuleSet(iptables);
    this.#nftables = nftables.map((table: NftTable) => new NftChains(table));
  }

  at(family: IPFamily, hook: Hook): readonly StageAt[] {
    const known = this.#known[family].get(hook);
    if (known !== undefined) return known;
    const made = this.#stagesAt(family, hook);
    this.#known[family].set(hook, made);
    return made;
  }

  #stagesAt(family: IPFamily, hook: Hook): readonly StageAt[] {
    const natPlace = BUILT_IN[hook].find(([stage]) => stage === "nat")?.[1] ?? 0;
    const builtIn = BUILT_IN[hook].map(([name, priority]) => this.#builtIn(name, priority, hook));
    const own = this.#nftables.flatMap((chains) => chains.bases(family, hook).map((base) => nftStage(base, natPlace)));
    // Sorting keeps the order of equals.
    const all = [...own.reverse(), ...builtIn];
    return all.sort((a, b) => a.place - b.place || a.priority - b.priority).map(({ stage }) => stage);
  }

  #builtIn(name: Table | "ipvs", priority: number, hook: Hook): Ordered {
    const stage: StageAt = {
      name,
      isNat: name === "nat",
      reroutes: true,
      tracked: priority > CONNTRACK,
      chain: name === "ipvs" ? undefined : this.#iptables.chain(name, hook),
    };
    return { stage, place: priority, priority };
  }
}

function nftStage(
  { chain, base, name }: { chain: Chain; base: BaseChain; name: TableName },
  natPlace: number,
): Ordered {
  const isNat = base.type === "nat";
  const { priority } = base;
  const stage = { name, isNat, reroutes: base.type !== "filter", tracked: isNat || priority > CONNTRACK, chain };
  return { stage, place: isNat ? natPlace : priority, priority };
}
