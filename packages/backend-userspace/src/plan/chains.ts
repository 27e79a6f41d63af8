/** The chains of this mode, their names, and the jumps into them. */

import { hostCIDR } from "@fairlead/base";
import { comment, isWritable, jump, type Match, type Rule, type Table } from "@fairlead/netfilter";
import type { RenderContext } from "./context.ts";

export const TABLES = ["filter", "nat"] as const satisfies readonly Table[];

export type RuleTable = (typeof TABLES)[number];

/** A rule in its chain. Rules of different groups never match the same packet: only a group's own have an order. */
export interface ChainRule {
  readonly table: RuleTable;
  readonly chain: string;
  readonly rule: Rule;
  /** Goes to the chain's top: filter asks about addresses before it asks about node ports. */
  readonly first?: true;
}

/** Names of kube-proxy's userspace mode, which it had until v1.25. */

/** nat: to cluster IPs, external and load-balancer addresses, from pods and from elsewhere. */
export const PORTALS_CONTAINER = "KUBE-PORTALS-CONTAINER";
/** The same from the node itself. */
export const PORTALS_HOST = "KUBE-PORTALS-HOST";
/** nat: to node ports, from pods and from elsewhere. */
export const NODEPORT_CONTAINER = "KUBE-NODEPORT-CONTAINER";
/** The same from the node itself. */
export const NODEPORT_HOST = "KUBE-NODEPORT-HOST";
/** filter: what may come in to the relays. */
export const NODEPORT_NON_LOCAL = "KUBE-NODEPORT-NON-LOCAL";

/** Chains that no other mode has. */
export const OWN_CHAINS: Readonly<Record<RuleTable, readonly string[]>> = {
  filter: [NODEPORT_NON_LOCAL],
  nat: [PORTALS_CONTAINER, PORTALS_HOST, NODEPORT_CONTAINER, NODEPORT_HOST],
};

/** Chains of iptables mode, which refuse what this mode does not relay; userspace mode of old had no such thing. */
export const SERVICES = "KUBE-SERVICES";
export const EXTERNAL_SERVICES = "KUBE-EXTERNAL-SERVICES";
export const PROXY_FIREWALL = "KUBE-PROXY-FIREWALL";

/** Every chain that this mode makes and cleanup removes. */
export const CHAINS: Readonly<Record<RuleTable, readonly string[]>> = {
  filter: [...OWN_CHAINS.filter, SERVICES, EXTERNAL_SERVICES, PROXY_FIREWALL],
  nat: OWN_CHAINS.nat,
};

export const BUILTIN_CHAINS: Readonly<Record<RuleTable, readonly string[]>> = {
  filter: ["INPUT", "FORWARD", "OUTPUT"],
  nat: ["PREROUTING", "OUTPUT"],
};

/** The rules of a built-in chain that lead to ours: some at its top, some at its end. */
interface Jumps {
  readonly table: RuleTable;
  readonly chain: string;
  readonly first: readonly Rule[];
  readonly last: readonly Rule[];
}

const NEW: Match = { kind: "conntrack", states: ["NEW"] };

// These three are word for word iptables mode's, so that either mode finds the other's in their place.
const toFirewall = to(PROXY_FIREWALL, NEW, comment("kubernetes load balancer firewall"));

const toRelays = to(NODEPORT_NON_LOCAL, comment("Ensure that non-local NodePort traffic can flow"));

const toExternal = to(EXTERNAL_SERVICES, NEW, comment("kubernetes externally-visible service portals"));

const toServices = to(SERVICES, NEW, comment("kubernetes service portals"));

const PORTALS = comment("handle ClusterIPs; NOTE: this must be before the NodePort rules");

export function jumps(context: RenderContext): readonly Jumps[] {
  return [
    { table: "filter", chain: "INPUT", first: [toFirewall, toRelays, toExternal], last: [] },
    { table: "filter", chain: "FORWARD", first: [toFirewall, toServices, toExternal], last: [] },
    { table: "filter", chain: "OUTPUT", first: [toFirewall, toServices], last: [] },
    {
      table: "nat",
      chain: "PREROUTING",
      first: [to(PORTALS_CONTAINER, PORTALS)],
      last: toNodePorts(NODEPORT_CONTAINER, context),
    },
    { table: "nat", chain: "OUTPUT", first: [to(PORTALS_HOST, PORTALS)], last: toNodePorts(NODEPORT_HOST, context) },
  ];
}

/**
 * Jumps of any form to chains that only this mode has, such as those to node-port addresses that are gone. Not those of
 * another program whose text can't be written, and so not be named to be deleted.
 */
export function leadsToOwn(rule: Rule, table: RuleTable): boolean {
  const { target } = rule;
  return target?.kind === "jump" && OWN_CHAINS[table].includes(target.chain) && isWritable(rule);
}

const NODE_PORTS = comment("handle service NodePorts; NOTE: this must be the last rule in the chain");

function to(chain: string, ...matches: readonly Match[]): Rule {
  return { matches, target: jump(chain) };
}

/** Asked last, as any address of the node's own would lead there. */
function toNodePorts(chain: string, context: RenderContext): readonly Rule[] {
  const { nodePortAddresses } = context.node;
  const target = jump(chain);
  if (nodePortAddresses.kind === "list") {
    return nodePortAddresses.addresses
      .filter((address) => servesLoopback(context) || !isLoopback(address))
      .map((address) => ({ destination: { cidr: hostCIDR(address) }, matches: [NODE_PORTS], target }));
  }
  const matches: readonly Match[] = [{ kind: "addrtype", dstType: { value: "LOCAL" } }, NODE_PORTS];
  return [{ ...exceptLoopback(context), matches, target }];
}

/** Loopback addresses serve no node ports where what listens there is the node's own. */
export function exceptLoopback(context: RenderContext): Pick<Rule, "destination"> {
  if (servesLoopback(context)) return {};
  return { destination: { negated: true, cidr: context.family === "IPv4" ? "127.0.0.0/8" : "::1/128" } };
}

function servesLoopback({ family, localhostNodePorts }: RenderContext): boolean {
  return family === "IPv4" && localhostNodePorts;
}

function isLoopback(address: string): boolean {
  return address.startsWith("127.") || address === "::1";
}
