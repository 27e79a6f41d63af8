/**
 * Established connections of services in a flowtable: their packets meet no rule of any table at prerouting, forward
 * and postrouting. An allow list decides which ones, so that other programs' connections are untouched, and the list is
 * data: neither an endpoint nor a device that comes or goes changes a rule.
 */

import type { Frontend, ServicePortGroup } from "@fairlead/core";
import {
  type Expression,
  type Hex,
  type NftChain,
  type NftFlowtable,
  type NftRule,
  type NftSet,
  statements,
} from "@fairlead/netfilter/nft";
import type { PlanContext } from "./context.ts";
import { distinguishesClients, EXCLUDED, FOREIGN } from "./context.ts";
import { addressKey, type EmptySet, frontendKey, nodePortKey, nodePortKeyTypes } from "./keys.ts";

export const FLOWTABLE = "fast-path";

const FAST_PATH_CHAIN = "fast-path-forward";
const CHECK = "fast-path-check";
const NODE_PORTS_CHECK = "fast-path-nodeports-check";
const SERVICES = "fast-path-services";
const NODE_PORTS = "fast-path-nodeports";

/** Behind all filter chains of the usual priorities: what these drop never gets there. */
const PRIORITY = 10;

/** Without its devices, which come and go by themselves; undefined: there is none. */
export function flowtable({ fastPath }: Pick<PlanContext, "fastPath">): NftFlowtable | undefined {
  return fastPath ? { name: FLOWTABLE, priority: 0, devices: [], counter: true } : undefined;
}

/** The services whose connections are put there, by the destination of their first packet. */
export function fastPathSets({ family, fastPath, nodePortAddresses }: PlanContext): readonly EmptySet[] {
  if (!fastPath) return [];
  const set = (name: string, key: NftSet["key"], comment: string): EmptySet => ({ name, key, flags: [], comment });
  return [
    set(SERVICES, frontendKey(family), "services whose connections bypass rules"),
    ...(nodePortAddresses === "all"
      ? []
      : [set(NODE_PORTS, nodePortKeyTypes, "nodeports whose connections bypass rules")]),
  ];
}

/**
 * A node port is known by its address as well: other programs translate connections to the same port of other
 * addresses. Which addresses are the node's, connection tracking does not know, so where node ports are served on all
 * of them their connections meet all rules. Each protocol has a rule: nft takes the ports of connection tracking only
 * behind a protocol.
 *
 * What all rules ask is in the base chain: each packet that stays off the fast path pays for it. Most of these belong
 * to no service, which the first question finds out. The kernel takes a TCP connection with the client's second packet
 * at the earliest, and a UDP flow that ends with its answer, as those of DNS do, is not worth an entry: replies need
 * no look-up.
 */
export function fastPathChains(context: PlanContext): readonly NftChain[] {
  const { family, fastPath, alongside, nodePortAddresses } = context;
  if (!fastPath) return [];
  const {
    establishedConnection,
    originalDirection,
    jump,
    originalService,
    originallyTo,
    protocolIs,
    translatedConnection,
  } = statements;
  const offload = (...to: readonly Expression[]) =>
    (["tcp", "udp"] as const).map((protocol) => ({
      expressions: [...protocolIs(protocol), ...to, { kind: "flow-offload", flowtable: FLOWTABLE } as const],
    }));
  const hasNodePorts = nodePortAddresses !== "all";
  const toNodePorts = { expressions: [...originallyTo(family, "nodeport-ips"), ...jump(NODE_PORTS_CHECK)] };
  return [
    {
      name: FAST_PATH_CHAIN,
      base: { type: "filter", hook: "forward", priority: alongside ? PRIORITY - 1 : PRIORITY, policy: "accept" },
      rules: [
        { expressions: [...translatedConnection, ...originalDirection, ...establishedConnection, ...jump(CHECK)] },
      ],
    },
    {
      name: CHECK,
      rules: [
        ...servedByOthers(context),
        ...offload(...originalService(family, SERVICES, true)),
        ...(hasNodePorts ? [toNodePorts] : []),
      ],
    },
    ...(hasNodePorts
      ? [{ name: NODE_PORTS_CHECK, rules: offload(...originalService(family, NODE_PORTS, false)) }]
      : []),
  ];
}

/**
 * Clients whose network serves them itself: their connections belong to that network, whichever proxy translates them.
 */
function servedByOthers(context: PlanContext): readonly NftRule[] {
  if (!distinguishesClients(context)) return [];
  const { originallyFrom, originallyTo, verdict } = statements;
  const { family } = context;
  const fromThem = [...originallyTo(family, FOREIGN), ...originallyFrom(family, EXCLUDED)];
  return [
    { expressions: [...fromThem, ...verdict({ kind: "return" })], comment: "Another network serves these clients" },
  ];
}

export interface Offloaded {
  readonly set: typeof SERVICES | typeof NODE_PORTS;
  readonly element: { readonly key: Hex };
}

/** Whether a service's connections may be put into the flowtable, which takes TCP and UDP. */
export function isOffloaded({ protocol, fastPath }: Pick<ServicePortGroup, "protocol" | "fastPath">): boolean {
  return protocol !== "SCTP" && fastPath !== "off";
}

/** @returns undefined: node ports are not on the list */
export function offloadedFrontend(
  { protocol }: Pick<ServicePortGroup, "protocol">,
  { address, port }: Pick<Frontend, "address" | "port">,
  { nodePortAddresses }: Pick<PlanContext, "nodePortAddresses">,
): Offloaded | undefined {
  if (address !== undefined) return { set: SERVICES, element: { key: addressKey(address, protocol, port) } };
  if (nodePortAddresses === "all") return undefined;
  return { set: NODE_PORTS, element: { key: nodePortKey(protocol, port) } };
}
