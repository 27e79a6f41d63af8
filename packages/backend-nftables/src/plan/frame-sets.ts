/** The sets and maps that are always there, and the chains that source ranges and clients outside need. */

import { hostCIDR } from "@fairlead/base";
import type { AllowedSources, Frontend, FrontendKind, ServicePortGroup } from "@fairlead/core";
import type { BaseChain, Expression, NftFamily, NftRule } from "@fairlead/netfilter/nft";
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
  distinguishesClients,
  EXCLUDED,
  FOREIGN,
  firewallChain,
  LOOPBACK_REFUSALS,
  nodePortFirewallChain,
  type PlanContext,
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
    ...(distinguishesClients(context)
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
 * The chains of a service port that only some may use, of each kind of frontend: a rule for each range that may, then
 * the drop. kube-proxy has one rule with an anonymous set, which costs the kernel a walk over the whole transaction.
 */
export function firewalls(
  { name, protocol, frontends }: ServicePortGroup,
  { family }: PlanContext,
): readonly NftChain[] {
  const gates = new Map<string, AllowedSources>();
  for (const { kind, gate } of frontends) {
    if (gate !== undefined) gates.set(FIREWALL_CHAINS[kind](name, protocol), gate);
  }
  return Array.from(gates, ([chain, gate]) => {
    const rules = allowed(gate).map((cidr) => ({
      expressions: [...statements.addressIn(family, "saddr", cidr), ...statements.verdict({ kind: "return" })],
    }));
    return { name: chain, rules: [...rules, { expressions: statements.verdict({ kind: "drop" }) }] };
  });
}

/** The chain of a kind of frontend that only some may use. */
export const FIREWALL_CHAINS = {
  "cluster-ip": firewallChain,
  "external-ip": firewallChain,
  "load-balancer": firewallChain,
  "node-port": nodePortFirewallChain,
} as const satisfies Record<FrontendKind, typeof firewallChain>;

/** The chain and the map that lead packets to the source ranges of services. kube-proxy always has them. */
const CHECK = "firewall-check";
const HOOKS = ["filter-prerouting-pre-dnat", "filter-output-pre-dnat"] as const;
const MAP = "firewall-ips";
/** Those to the source ranges of node ports are there only where a service has such. */
const NODE_PORTS_CHECK = "firewall-nodeports-check";
const NODE_PORTS_HOOKS = ["filter-prerouting-nodeports", "filter-output-nodeports"] as const;
const NODE_PORTS_MAP = "firewall-nodeports";

/** The maps of source ranges by the chains that ask them, which may outlast the last service that has ranges. */
export const RANGE_CHECKS: ReadonlyMap<string, string> = new Map([
  ...[CHECK, ...HOOKS].map((chain) => [chain, MAP] as const),
  ...[NODE_PORTS_CHECK, ...NODE_PORTS_HOOKS].map((chain) => [chain, NODE_PORTS_MAP] as const),
]);

/** The map that asks for a frontend's source ranges. */
export const FIREWALL_MAPS = {
  address: MAP,
  "node-port": NODE_PORTS_MAP,
} as const satisfies Record<Frontend["at"], string>;

export function firewallCheck({ family }: Pick<PlanContext, "family">): NftChain {
  return { name: CHECK, rules: [dispatch(family, MAP)] };
}

export function firewallHooks(context: Pick<PlanContext, "alongside">): readonly NftChain[] {
  const base = baseChain(context);
  return [base("filter", "prerouting", -110, HOOKS[0], CHECK), base("filter", "output", -110, HOOKS[1], CHECK)];
}

/** With the fast path it comes with the first service that has source ranges. */
export const firewallNeed: Need = {
  id: CHECK,
  make: (context) => ({ sets: [firewallMap(context)], chains: [firewallCheck(context), ...firewallHooks(context)] }),
};

/** Comes with the first service whose node port has source ranges. */
export const nodePortFirewallNeed: Need = {
  id: NODE_PORTS_CHECK,
  make: (context) => {
    const base = baseChain(context);
    const comment = "nodeports that are subject to source ranges";
    return {
      sets: [{ name: NODE_PORTS_MAP, key: nodePortKeyTypes, data: "verdict", flags: [], comment }],
      chains: [
        {
          name: NODE_PORTS_CHECK,
          rules: [nodePortDispatch(context, NODE_PORTS_MAP, statements.addressTypeIs("daddr", "local"))],
        },
        base("filter", "prerouting", -110, NODE_PORTS_HOOKS[0], NODE_PORTS_CHECK),
        base("filter", "output", -110, NODE_PORTS_HOOKS[1], NODE_PORTS_CHECK),
      ],
    };
  },
};

/** Intervals are no single elements: they are written all together. */
export function excludedElements(context: Clients): readonly SetElement[] {
  return distinguishesClients(context) ? intervalElements(context.excludedClients ?? []) : [];
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
export function baseChain({ alongside }: Pick<PlanContext, "alongside">) {
  return (
    type: BaseChain["type"],
    hook: BaseChain["hook"],
    priority: number,
    name: string,
    ...to: readonly string[]
  ): NftChain => ({
    name,
    base: { type, hook, priority: alongside ? priority - 1 : priority, policy: "accept" },
    rules: to.map((chain) => ({
      expressions: [...(type === "nat" ? [] : statements.newConnection), ...statements.jump(chain)],
    })),
  });
}

/** @param anyAddress what else a packet is asked for where node ports are served on every address */
export function nodePortDispatch(
  { family, nodePortAddresses }: PlanContext,
  map: string,
  anyAddress: readonly Expression[],
): NftRule {
  const served =
    nodePortAddresses === "all"
      ? [...anyAddress, ...statements.addressIn(family, "daddr", LOOPBACK[family], "!=")]
      : statements.lookUp(family, ["daddr"], "nodeport-ips");
  return { expressions: [...served, ...statements.lookUp(family, ["l4proto", "dport"], map, "verdict")] };
}

export const LOOPBACK = { ip: "127.0.0.0/8", ip6: "::1/128" } as const;

/** Leads a packet where a map has it go, by its destination. */
export function dispatch(family: NftFamily, map: string): NftRule {
  return { expressions: statements.lookUp(family, ["daddr", "l4proto", "dport"], map, "verdict") };
}
