/** What one group of Services comes to: members of sets and virtual servers. */

import { familyOf, hostCIDR, inAnyOf } from "@fairlead/base";
import type {
  AllowedSources,
  EndpointSetName,
  Frontend,
  PlanEndpoint,
  Protocol,
  ServicePortGroup,
  Treatment,
} from "@fairlead/core";
import { renderServerKey, type VirtualServer, type VirtualServerKey } from "@fairlead/netfilter";
import { askedScheduler, type PlanContext, type SchedulerOptions, schedulerOptions } from "./context.ts";
import type { SetKey } from "./sets.ts";

/** An address that the node itself may not use: no source range of the service contains the node. */
export interface BarredAddress {
  readonly address: string;
  readonly protocol: "tcp" | "udp" | "sctp";
  readonly port: number;
}

interface Membership {
  readonly set: SetKey;
  readonly member: string;
}

export interface GroupObjects {
  readonly servers: readonly WantedServer[];
  /** To stand on the service device. */
  readonly addresses: readonly string[];
  readonly members: readonly Membership[];
  readonly barred: readonly BarredAddress[];
}

export const NO_OBJECTS: GroupObjects = {
  servers: [],
  addresses: [],
  members: [],
  barred: [],
};

export function groupObjects(group: ServicePortGroup, context: PlanContext): GroupObjects {
  const addresses = boundAddresses(group, context);
  return {
    servers: wantedServers(group, context),
    addresses,
    members: [
      ...memberships(group, context),
      ...addresses.map((address): Membership => ({ set: "KUBE-IPVS-IPS", member: address })),
    ],
    barred: barredAddresses(group, context),
  };
}

/** A virtual server that has to be there. Its destinations are reached by masquerading (`-m`). */
export interface WantedServer {
  /** `renderServerKey` of the server. */
  readonly key: string;
  readonly server: VirtualServer;
  readonly endpoints: readonly PlanEndpoint[];
  /** In the order of the endpoints; absent: each has weight 1. */
  readonly weights?: readonly number[];
  /**
   * Where connections to endpoints that are gone are to end: the endpoints that there are, ready or not, of which
   * others drain. Absent: whatever is not wanted any more drains.
   */
  readonly present?: readonly PlanEndpoint[];
  /** Of a node port. One with the address and port of another service's frontend gives way to it. */
  readonly nodePort: boolean;
}

/**
 * Cluster IPs, and external addresses that no node has anyway. Node ports stand on addresses that are there. At another
 * node's address the virtual server takes what this node itself sends; the rest goes on to that node, which has the
 * virtual server too.
 */
function boundAddresses(group: ServicePortGroup, { nodeAddresses, otherNodes }: PlanContext): readonly string[] {
  const addresses = servedFrontends(group).flatMap(({ reach, address }) => {
    if (address === undefined) return [];
    return reach === "internal" || !(nodeAddresses.has(address) || otherNodes.has(address)) ? [address] : [];
  });
  return [...new Set(addresses)];
}

function barredAddresses(group: ServicePortGroup, context: PlanContext): readonly BarredAddress[] {
  const protocol = ({ TCP: "tcp", UDP: "udp", SCTP: "sctp" } as const)[group.protocol];
  return servedFrontends(group).flatMap((frontend) => {
    const { kind, port, gate } = frontend;
    if (gate === undefined) return [];
    const admits = ADMITS[kind](gate);
    return frontendAddresses(frontend, context)
      .filter((address) => !admits(address))
      .map((address) => ({ address, protocol, port }));
  });
}

type Admits = (gate: AllowedSources) => (address: string) => boolean;

/** kube-proxy asks only whether a range contains the node's address, which says what else stands in the gate. */
const byAddress: Admits =
  ({ addresses }) =>
  (address) =>
    addresses.includes(address);

/** Whether the node may reach an address from that very address. */
const ADMITS = {
  "cluster-ip": byAddress,
  "external-ip": byAddress,
  "load-balancer": byAddress,
  "node-port": ({ ranges }) => inAnyOf(ranges),
} as const satisfies Record<Frontend["kind"], Admits>;

/** All set members that a group needs, the addresses on the service device aside. */
function* memberships(group: ServicePortGroup, context: PlanContext): Generator<Membership> {
  for (const { address, port } of group.onNode ?? []) {
    yield { set: "KUBE-LOOP-BACK", member: `${addressPort(group, address, port)},${address}` };
  }
  for (const frontend of servedFrontends(group)) yield* MEMBERS[frontend.kind](group, frontend, context);
  if (group.healthCheckPort !== undefined) {
    yield { set: "KUBE-HEALTH-CHECK-NODE-PORT", member: String(group.healthCheckPort) };
  }
}

const NODE_PORT_SETS = {
  TCP: ["KUBE-NODE-PORT-TCP", "KUBE-NODE-PORT-LOCAL-TCP"],
  UDP: ["KUBE-NODE-PORT-UDP", "KUBE-NODE-PORT-LOCAL-UDP"],
  SCTP: ["KUBE-NODE-PORT-SCTP-HASH", "KUBE-NODE-PORT-LOCAL-SCTP-HASH"],
} as const satisfies Record<Protocol, readonly [SetKey, SetKey]>;

/** kube-proxy's sets are named after kinds of frontends: one that is not in here does not compile. */
const MEMBERS = {
  "cluster-ip": clusterIPMembers,
  "external-ip": externalMembers,
  "load-balancer": loadBalancerMembers,
  "node-port": nodePortMembers,
} as const satisfies Record<
  Frontend["kind"],
  (group: ServicePortGroup, frontend: Frontend, context: PlanContext) => Iterable<Membership>
>;

function memberOf(group: ServicePortGroup, { address = "", port }: Frontend): string {
  return addressPort(group, address, port);
}

/** The rules around the sets masquerade all but pods of this node, and every client at a load balancer's addresses. */
function* clusterIPMembers(
  group: ServicePortGroup,
  frontend: Frontend,
  { masqueradeAll }: PlanContext,
): Generator<Membership> {
  const member = memberOf(group, frontend);
  yield { set: "KUBE-CLUSTER-IP", member };
  if (!masqueradeAll && masqueradesPods(frontend)) yield { set: "KUBE-LOAD-BALANCER", member };
}

function* externalMembers(group: ServicePortGroup, frontend: Frontend): Generator<Membership> {
  const set = keepsSource(frontend) ? "KUBE-EXTERNAL-IP-LOCAL" : "KUBE-EXTERNAL-IP";
  yield { set, member: memberOf(group, frontend) };
}

function* loadBalancerMembers(group: ServicePortGroup, frontend: Frontend): Generator<Membership> {
  const member = memberOf(group, frontend);
  yield { set: "KUBE-LOAD-BALANCER", member };
  if (keepsSource(frontend)) yield { set: "KUBE-LOAD-BALANCER-LOCAL", member };
  yield* sourceMembers(frontend, member);
}

function* sourceMembers({ address = "", gate }: Frontend, member: string): Generator<Membership> {
  if (gate === undefined) return;
  yield { set: "KUBE-LOAD-BALANCER-FW", member };
  for (const range of gate.ranges.flatMap(setNetworks)) {
    yield { set: "KUBE-LOAD-BALANCER-SOURCE-CIDR", member: `${member},${range}` };
  }
  if (gate.addresses.includes(address)) {
    yield { set: "KUBE-LOAD-BALANCER-SOURCE-IP", member: `${member},${address}` };
  }
}

/** A network as ipset has it: hosts without their length, and everything in two halves, since it knows no length 0. */
function setNetworks(cidr: string): readonly string[] {
  const [address = "", length] = cidr.split("/");
  if (length === "0") return familyOf(address) === "IPv6" ? ["::/1", "8000::/1"] : ["0.0.0.0/1", "128.0.0.0/1"];
  return [cidr === hostCIDR(address) ? address : cidr];
}

function* nodePortMembers(group: ServicePortGroup, frontend: Frontend, context: PlanContext): Generator<Membership> {
  // On some of the node's addresses only: the sets of node ports do not distinguish addresses.
  if (frontend.address !== undefined) {
    yield* externalMembers(group, frontend);
    return yield* sourceMembers(frontend, memberOf(group, frontend));
  }
  const [all, local] = NODE_PORT_SETS[group.protocol];
  const addresses = frontendAddresses(frontend, context);
  const ports = addresses.length === 0 ? [] : [String(frontend.port)];
  const hosts = addresses.map((address) => addressPort(group, address, frontend.port));
  for (const member of group.protocol === "SCTP" ? hosts : ports) {
    yield { set: all, member };
    if (keepsSource(frontend)) yield { set: local, member };
  }
  for (const host of hosts) yield* sourceMembers(frontend, host);
}

function addressPort(group: ServicePortGroup, address: string, port: number): string {
  return `${address},${group.protocol.toLowerCase()}:${port}`;
}

/** The virtual servers of a group, each once: an external address may be a load balancer's as well. */
function wantedServers(group: ServicePortGroup, context: PlanContext): readonly WantedServer[] {
  const servers = new Map<string, WantedServer>();
  const options = serverOptions(group, context);
  const ends = context.resetStaleTCP && group.protocol === "TCP" ? { present: group.present ?? group.serving } : {};
  for (const frontend of servedFrontends(group)) {
    for (const address of frontendAddresses(frontend, context)) {
      const where: VirtualServerKey = {
        family: group.family,
        protocol: group.protocol,
        address,
        port: frontend.port,
      };
      const key = renderServerKey(where);
      if (servers.has(key)) continue;
      const server = { ...where, ...options };
      servers.set(key, {
        key,
        server,
        ...endpointsOf(group, frontend),
        ...ends,
        nodePort: frontend.at === "node-port",
      });
    }
  }
  return [...servers.values()];
}

/** The frontend's own address, or those that node ports are served on. */
function frontendAddresses(frontend: Frontend, context: PlanContext): readonly string[] {
  return frontend.address === undefined ? context.nodePortAddresses : [frontend.address];
}

function serverOptions(group: ServicePortGroup, context: PlanContext): Omit<VirtualServer, keyof VirtualServerKey> {
  const { affinitySeconds } = group;
  return {
    ...schedulerOf(group, context),
    ...(affinitySeconds !== undefined && { persistenceSeconds: affinitySeconds }),
  };
}

function schedulerOf(group: ServicePortGroup, context: PlanContext): SchedulerOptions {
  const asked = askedScheduler(group, context.scheduler);
  return asked === undefined || context.lacking.has(asked.scheduler) ? schedulerOptions(context.scheduler) : asked;
}

/** Plain questions about a frontend. In this mode all source classes are treated alike but for masquerading. */

type Proxied = Extract<Treatment, { verdict: "proxy" }>;

function proxied({ treatments: { outside } }: Frontend): Proxied | undefined {
  return outside.verdict === "proxy" ? outside : undefined;
}

/** The frontends that this proxy serves: those that are left to another network are nowhere. */
function servedFrontends(group: ServicePortGroup): readonly Frontend[] {
  return group.frontends.filter((frontend) => proxied(frontend) !== undefined);
}

function endpointsOf(group: ServicePortGroup, frontend: Frontend): Pick<WantedServer, "endpoints" | "weights"> {
  const set: EndpointSetName = proxied(frontend)?.set ?? "cluster";
  const weights = group.weights?.[set]?.endpoints;
  return { endpoints: group[set], ...(weights && { weights }) };
}

/** The client's address is kept, as externalTrafficPolicy Local asks for. */
function keepsSource(frontend: Frontend): boolean {
  return proxied(frontend)?.masquerade === false;
}

/** Even this node's pods are masqueraded. */
function masqueradesPods({ treatments: { pod } }: Frontend): boolean {
  return pod.verdict === "proxy" && pod.masquerade;
}
