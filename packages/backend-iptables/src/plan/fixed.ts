import type { ForwardingPlan } from "@fairlead/core";
import type { Rule } from "@fairlead/netfilter";
import type { ChainRules } from "./chain-rules.ts";
import { dispatchesIn, dispatchRules } from "./dispatch.ts";
import { DISPATCH_CHAINS, forwardChain, LOCALNET_RULE, markChains, nodePortJumps, postroutingChain } from "./frame.ts";
import { JUMPS, KUBELET_JUMP, KUBELET_JUMP_CHAINS } from "./jumps.ts";
import { KUBELET_FIREWALL, SERVICES } from "./names.ts";
import type { RenderContext } from "./settings.ts";

/** What a table is held against. */
export interface Wanted {
  readonly plan: ForwardingPlan;
  readonly context: RenderContext;
}

/** The tables that services are in. */
export type ServiceTable = keyof typeof DISPATCH_CHAINS;

/** Chains that hold just these rules, however many services there are. */
export function constantChains(table: ServiceTable, context: RenderContext): readonly ChainRules[] {
  return table === "filter" ? [forwardChain(context)] : [postroutingChain(context), ...markChains(context)];
}

/** Chains of others with the rules in them that are ours. */
export function sharedChains(table: ServiceTable, { localhost }: RenderContext): readonly ChainRules[] {
  const jumps = JUMPS.filter((one) => one.table === table);
  if (table === "nat") return jumps;
  const toFirewall = KUBELET_JUMP_CHAINS.map((chain): ChainRules => ({ chain, rules: [KUBELET_JUMP] }));
  // First what is jumped to.
  return [{ chain: KUBELET_FIREWALL, rules: localhost ? [LOCALNET_RULE] : [] }, ...jumps, ...toFirewall];
}

/**
 * What the shared chains of a table hold, by name, in an order in which they can be written. Yields after each group.
 */
export function* dispatchOf(
  table: ServiceTable,
  { plan, context }: Wanted,
): Generator<void, ReadonlyMap<string, readonly Rule[]>> {
  const [head, tail] = [chainsIn(table), chainsIn(table)];
  for (const group of plan.groups.values()) {
    if (dispatchesIn(group, table)) {
      for (const entry of dispatchRules(group, context)) {
        const part = entry.end === "head" ? head : tail;
        if (entry.table === table) part.get(entry.chain)?.push(entry.rule);
      }
    }
    yield;
  }
  if (table === "nat") tail.get(SERVICES)?.push(...lastRules(context));
  return new Map([...head].map(([chain, rules]) => [chain, [...rules, ...(tail.get(chain) ?? [])]]));
}

function chainsIn(table: ServiceTable): Map<string, Rule[]> {
  return new Map(DISPATCH_CHAINS[table].map((chain) => [chain, []]));
}

/** The last rules of nat's KUBE-SERVICES. */
export function lastRules(context: RenderContext): readonly Rule[] {
  return nodePortJumps(context);
}
