/** The sets and maps that are always there, and the chains that source ranges and clients outside need. */

import { hostCIDR } from "@fairlead/base";
import type { AllowedSources, ServicePortGroup } from "@fairlead/core";
import type { BaseChain, NftFamily, NftRule } from "@fairlead/netfilter/nft";
import {
  addressHex,
  intervalElements,
  type NftChain,
  type NftSet,
  type SetElement,
  statements,
} from "@fairlead/netfilter/nft";
import {
  type Clients,
  EXCLUDED,
  FOREIGN,
  firewallChain,
  LOOPBACK_REFUSALS,
  type PlanContext,
  tellsClients,
} from "./context.ts";
import { fastPathSets } from "./fast-path.ts";
import { addressType, type EmptySet, frontendKey, nodePortKeyTypes } from "./keys.ts";
import type { Need } from "./pools.ts";

/** kube-proxy's sets and maps, without their elements. */
export function frameSets(context: PlanContext): readonly EmptySet[] {
  const { family, nodePortAddresses, foreignClusterIPs, refusedOnLoopback } = context;
  const address = addressType(family);
  const frontend = frontendKey(family);
  const nodePort = nodePortKeyTypes;
  const set = (name: string, key: NftSet["key"], comment: string): EmptySet => ({ name, key, flags: [], comment });
  const vmap = (name: string, key: NftSet["key"], comment: string): EmptySet => ({
    ...set(name, key, comment),
    data: "verdict",
  });
  return [
    set("hairpin-connections", [address, ...frontend], "service hairpin connections"),
    set("cluster-ips", [address], "Active ClusterIPs"),
    ...(nodePortAddresses === "all" ? [] : [set("nodeport-ips", [address], "IPs that accept NodePort traffic")]),
    vmap("no-endpoint-services", frontend, "vmap to drop or reject packets to services with no endpoints"),
    vmap("no-endpoint-nodeports", nodePort, "vmap to drop or reject packets to service nodeports with no endpoints"),
    ...(context.fastPath ? [] : [firewallMap(context)]),
    vmap("service-ips", frontend, "ClusterIP, ExternalIP and LoadBalancer IP traffic"),
    vmap("service-nodeports", nodePort, "NodePort traffic"),
    ...(refusedOnLoopback.length === 0
      ? []
      : [vmap(LOOPBACK_REFUSALS, nodePort, "localhost NodePorts rejected by kube-proxy")]),
    ...(foreignClusterIPs.length === 0 ? [] : [set(FOREIGN, [address], "ClusterIPs that another network serves")]),
    ...(tellsClients(context)
      ? [{ ...set(EXCLUDED, [address], "clients that another network serves"), flags: ["interval"] as const }]
      : []),
    ...fastPathSets(context),
  ];
}

/** What the other sets have that does not come from groups. */
export function frameElements(context: PlanContext): ReadonlyMap<string, readonly SetElement[]> {
  const { nodePortAddresses, foreignClusterIPs } = context;
  const addresses = (list: readonly string[]) => list.map((address) => ({ key: addressHex(address) }));
  return new Map([
    ["nodeport-ips", nodePortAddresses === "all" ? [] : addresses(nodePortAddresses)],
    [FOREIGN, addresses(foreignClusterIPs)],
  ]);
}

/**
 * The chain of a service port that only some may use: a rule for each range that may, then the drop. kube-proxy has one
 * rule with an anonymous set, which costs the kernel a walk over the whole transaction.
 */
export function firewall(
  { name, protocol, frontends }: ServicePortGroup,
  { family }: PlanContext,
): NftChain | undefined {
  const gate = frontends.find((frontend) => frontend.gate !== undefined)?.gate;
  if (gate === undefined) return undefined;
  const rules = allowed(gate).map((cidr) => ({
    expressions: [...statements.addressIn(family, "saddr", cidr), ...statements.verdict({ kind: "return" })],
  }));
  return {
    name: firewallChain(name, protocol),
    rules: [...rules, { expressions: statements.verdict({ kind: "drop" }) }],
  };
}

/** The chain and the map that lead packets to the source ranges of services. kube-proxy always has them. */
const CHECK = "firewall-check";
const MAP = "firewall-ips";

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

/** Intervals are no single elements: they are written all together. */
export function excludedElements(context: Clients): readonly SetElement[] {
  return tellsClients(context) ? intervalElements(context.excludedClients ?? []) : [];
}

function allowed({ ranges, addresses }: AllowedSources): readonly string[] {
  return [...new Set([...ranges, ...addresses.map((address) => hostCIDR(address))])];
}

function firewallMap({ family }: Pick<PlanContext, "family">): EmptySet {
  const comment = "destinations that are subject to LoadBalancerSourceRanges";
  return { name: MAP, key: frontendKey(family), data: "verdict", flags: [], comment };
}

/**
 * kube-proxy's base chains: each leads to chains of its own, filters for the first packet of a connection only.
 * Alongside another proxy each comes before that one's of the same kind: a packet to an address without a service of
 * the other one, which that one drops or refuses, is translated or answered by then.
 */
export function baseChain({ beside }: Pick<PlanContext, "beside">) {
  return (
    type: BaseChain["type"],
    hook: BaseChain["hook"],
    priority: number,
    name: string,
    ...to: readonly string[]
  ): NftChain => ({
    name,
    base: { type, hook, priority: beside ? priority - 1 : priority, policy: "accept" },
    rules: to.map((chain) => ({
      expressions: [...(type === "nat" ? [] : statements.newConnection), ...statements.jump(chain)],
    })),
  });
}

/** Leads a packet where a map has it go, by its destination. */
export function dispatch(family: NftFamily, map: string): NftRule {
  return { expressions: statements.lookUp(family, ["daddr", "l4proto", "dport"], map, "verdict") };
}
