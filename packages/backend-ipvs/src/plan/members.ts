import { familyOf, hostCIDR } from "@fairlead/base";
import type { Frontend, Protocol, ServicePortGroup } from "@fairlead/core";
import type { PlanContext } from "./context.ts";
import { keepsSource, masqueradesPods, servedFrontends } from "./frontends.ts";
import { frontendAddresses } from "./servers.ts";
import type { SetKey } from "./sets.ts";

/** What has to be in a set. */
export interface Membership {
  readonly set: SetKey;
  readonly member: string;
}

/** All set members that a group needs, the addresses on the service device aside. */
export function* memberships(group: ServicePortGroup, context: PlanContext): Generator<Membership> {
  for (const { address, port } of group.onNode ?? []) {
    yield { set: "KUBE-LOOP-BACK", member: `${addressPort(group, address, port)},${address}` };
  }
  for (const frontend of servedFrontends(group)) yield* MEMBERS[frontend.kind](group, frontend, context);
  if (group.healthCheckPort !== undefined) {
    yield { set: "KUBE-HEALTH-CHECK-NODE-PORT", member: String(group.healthCheckPort) };
  }
}

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

const NODE_PORT_SETS = {
  TCP: ["KUBE-NODE-PORT-TCP", "KUBE-NODE-PORT-LOCAL-TCP"],
  UDP: ["KUBE-NODE-PORT-UDP", "KUBE-NODE-PORT-LOCAL-UDP"],
  SCTP: ["KUBE-NODE-PORT-SCTP-HASH", "KUBE-NODE-PORT-LOCAL-SCTP-HASH"],
} as const satisfies Record<Protocol, readonly [SetKey, SetKey]>;

function* nodePortMembers(group: ServicePortGroup, frontend: Frontend, context: PlanContext): Generator<Membership> {
  // On some of the node's addresses only: the sets of node ports do not distinguish addresses.
  if (frontend.address !== undefined) return yield* externalMembers(group, frontend);
  const [all, local] = NODE_PORT_SETS[group.protocol];
  const addresses = frontendAddresses(frontend, context);
  const ports = addresses.length === 0 ? [] : [String(frontend.port)];
  const hosts = addresses.map((address) => addressPort(group, address, frontend.port));
  for (const member of group.protocol === "SCTP" ? hosts : ports) {
    yield { set: all, member };
    if (keepsSource(frontend)) yield { set: local, member };
  }
}

function addressPort(group: ServicePortGroup, address: string, port: number): string {
  return `${address},${group.protocol.toLowerCase()}:${port}`;
}
