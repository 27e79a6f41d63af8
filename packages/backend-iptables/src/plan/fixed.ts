import type { ForwardingPlan } from "@fairlead/core";
import { type Rule, renderRule } from "@fairlead/netfilter";
import type { ChainRules } from "./chain-rules.ts";
import { dispatchesIn, dispatchRules } from "./dispatch.ts";
import { DISPATCH_CHAINS, forwardChain, LOCALNET_RULE, markChains, nodePortJumps, postroutingChain } from "./frame.ts";
import { JUMPS, KUBELET_JUMP, KUBELET_JUMP_CHAINS } from "./jumps.ts";
import { KUBELET_FIREWALL, SERVICES } from "./names.ts";
import type { RenderContext } from "./settings.ts";

/** The tables that services are in. */
export type ServiceTable = keyof typeof DISPATCH_CHAINS;

/** Chains that hold just these rules, however many services there are. */
export function constantChains(table: ServiceTable, context: RenderContext): readonly ChainRules[] {
  return table === "filter" ? [forwardChain(context)] : [postroutingChain(context), ...markChains(context)];
}

/** Chains of others with the rules in them that are ours. */
export function sharedChains(table: ServiceTable, { localhost }: RenderContext): readonly ChainRules[] {
  const jumps = JUMPS.filter((one) => one.table === table);
  if (table === "nat" || !localhost) return jumps;
  const toFirewall = KUBELET_JUMP_CHAINS.map((chain): ChainRules => ({ chain, rules: [KUBELET_JUMP] }));
  return [...jumps, ...toFirewall, { chain: KUBELET_FIREWALL, rules: [LOCALNET_RULE] }];
}

/** What the shared chains of a table hold, as text, in whatever order but for `last`. Yields after each group. */
export function* dispatchTexts(
  table: ServiceTable,
  plan: ForwardingPlan,
  context: RenderContext,
): Generator<void, ReadonlyMap<string, readonly string[]>> {
  const texts = new Map<string, string[]>(DISPATCH_CHAINS[table].map((chain) => [chain, []]));
  for (const group of plan.groups.values()) {
    if (dispatchesIn(group, table)) {
      for (const entry of dispatchRules(group, context)) {
        if (entry.table === table) texts.get(entry.chain)?.push(renderRule(entry.rule));
      }
    }
    yield;
  }
  if (table === "nat") texts.get(SERVICES)?.push(...lastRules(context).map(renderRule));
  return texts;
}

/** The last rules of nat's KUBE-SERVICES. */
export function lastRules(context: RenderContext): readonly Rule[] {
  return nodePortJumps(context);
}
