import type { NftChain } from "@fairlead/netfilter/nft";
import { baseChain } from "./base-chain.ts";
import type { PlanContext } from "./context.ts";
import { dispatch } from "./dispatch.ts";
import { type EmptySet, frontendKey } from "./key-types.ts";
import type { Need } from "./pools.ts";

/** The chain and the map that lead packets to the source ranges of services. kube-proxy always has them. */
const CHECK = "firewall-check";
const MAP = "firewall-ips";

export function firewallMap({ family }: Pick<PlanContext, "family">): EmptySet {
  const comment = "destinations that are subject to LoadBalancerSourceRanges";
  return { name: MAP, key: frontendKey(family), data: "verdict", flags: [], comment };
}

export function firewallCheck({ family }: Pick<PlanContext, "family">): NftChain {
  return { name: CHECK, rules: [dispatch(family, MAP)] };
}

export function firewallHooks(context: Pick<PlanContext, "beside">): readonly NftChain[] {
  const base = baseChain(context);
  return [
    base("filter", "prerouting", -110, "filter-prerouting-pre-dnat", CHECK),
    base("filter", "output", -110, "filter-output-pre-dnat", CHECK),
  ];
}

/** With the fast path it comes with the first service that has source ranges. */
export const firewallNeed: Need = {
  id: CHECK,
  make: (context) => ({ sets: [firewallMap(context)], chains: [firewallCheck(context), ...firewallHooks(context)] }),
};
