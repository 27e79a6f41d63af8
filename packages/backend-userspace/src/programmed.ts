import type { SyncReport } from "@fairlead/core";
import type { Rule } from "@fairlead/netfilter";
import type { ChainRule, RuleTable } from "./plan/chains.ts";
import type { RenderContext } from "./plan/context.ts";
import type { Relays } from "./relay/relays.ts";

/** What the kernel has taken. */
export interface Programmed {
  readonly context: RenderContext;
  readonly relays: Relays;
  /** By group. */
  readonly rules: Map<string, readonly ChainRule[]>;
}

/** Rules that one sync wrote, by table. */
export type Written = Readonly<Record<"filter" | "nat", number>>;

export const NOTHING: Written = { filter: 0, nat: 0 };

/** The rules of each chain of this mode, by `table chain`. */
export function rulesByChain({ rules }: Programmed): ReadonlyMap<string, readonly Rule[]> {
  const chains = new Map<string, Rule[]>();
  for (const group of rules.values()) {
    for (const { table, chain, rule } of group) {
      const held = chains.get(chainKey(table, chain)) ?? [];
      chains.set(chainKey(table, chain), held);
      held.push(rule);
    }
  }
  return chains;
}

export function chainKey(table: RuleTable, chain: string): string {
  return `${table} ${chain}`;
}

export function report(kind: SyncReport["kind"], programmed: Programmed, written: Written): SyncReport {
  const totals = { filter: 0, nat: 0 };
  for (const group of programmed.rules.values()) for (const { table } of group) totals[table] += 1;
  return {
    kind,
    objects: {
      filter: { total: totals.filter, written: written.filter },
      nat: { total: totals.nat, written: written.nat },
    },
  };
}
