import type { ForwardingPlan } from "@fairlead/core";
import type { Rule } from "@fairlead/netfilter";
import { dispatchesIn, dispatchRules } from "./dispatch.ts";
import { DISPATCH_CHAINS, forwardChain, LOCALNET_RULE, markChains, nodePortJumps, postroutingChain } from "./frame.ts";
import { JUMPS, KUBELET_JUMP, KUBELET_JUMP_CHAINS } from "./jumps.ts";
import { CANARY, KUBELET_FIREWALL, SERVICES } from "./names.ts";
import type { RenderContext } from "./settings.ts";

/** What the chains are compared with. */
export interface Wanted {
  readonly plan: ForwardingPlan;
  readonly context: RenderContext;
}

/** A chain of a fixed name and the rules of ours that it must hold. */
export interface FixedChain {
  readonly chain: string;
  /** In whatever order; given in one in which they can be written. */
  readonly rules: readonly Rule[];
  /** Behind `rules`, in this order. */
  readonly last: readonly Rule[];
  /** Else it belongs to others, and our rules stand among theirs. */
  readonly isOurs: boolean;
}

const CANARY_CHAIN: FixedChain = { chain: CANARY, rules: [], last: [], isOurs: true };

/** The chains of fixed names that a table must have. Yields after each group. */
export function* fixedChains(
  table: "filter" | "mangle" | "nat",
  { plan, context }: Wanted,
): Generator<void, readonly FixedChain[]> {
  if (table === "mangle") return [CANARY_CHAIN];
  const [head, tail] = [rulesByChain(table), rulesByChain(table)];
  for (const group of plan.groups.values()) {
    if (dispatchesIn(group, table)) {
      for (const entry of dispatchRules(group, context)) {
        if (entry.table === table) (entry.end === "head" ? head : tail).get(entry.chain)?.push(entry.rule);
      }
    }
    yield;
  }
  const last = (chain: string) => (table === "nat" && chain === SERVICES ? nodePortJumps(context) : []);
  return [
    CANARY_CHAIN,
    ...constantChains(table, context),
    ...DISPATCH_CHAINS[table].map((chain): FixedChain => {
      const rules = [...(head.get(chain) ?? []), ...(tail.get(chain) ?? [])];
      return { chain, rules, last: last(chain), isOurs: true };
    }),
    ...sharedChains(table, context),
  ];
}

type ServiceTable = keyof typeof DISPATCH_CHAINS;

function rulesByChain(table: ServiceTable): ReadonlyMap<string, Rule[]> {
  return new Map(DISPATCH_CHAINS[table].map((chain) => [chain, []]));
}

/** Chains that hold the same rules however many services there are. */
function constantChains(table: ServiceTable, context: RenderContext): readonly FixedChain[] {
  const chains = table === "filter" ? [forwardChain(context)] : [postroutingChain(context), ...markChains(context)];
  return chains.map(({ chain, rules }) => ({ chain, rules: [], last: [...rules], isOurs: true }));
}

/** Chains of others with the rules in them that are ours. */
function sharedChains(table: ServiceTable, { localhost }: RenderContext): readonly FixedChain[] {
  const jumps = JUMPS.filter((one) => one.table === table);
  const kubelets = [
    { chain: KUBELET_FIREWALL, rules: localhost ? [LOCALNET_RULE] : [] },
    ...KUBELET_JUMP_CHAINS.map((chain) => ({ chain, rules: [KUBELET_JUMP] })),
  ];
  const shared = table === "nat" ? jumps : [...jumps, ...kubelets];
  return shared.map(({ chain, rules }) => ({ chain, rules, last: [], isOurs: false }));
}
