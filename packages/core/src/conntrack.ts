/**
 * Which connections have to be forgotten after a change of the plan: those that would go on to an endpoint that no
 * longer serves.
 */

import { addressWords, PrefixMap } from "@fairlead/base";
import type { IPFamily, Protocol } from "./objects.ts";
import type { PlanChange, PlanEndpoint, ServicePortGroup } from "./plan.ts";
import { claimKey, type FrontendLookup } from "./planner/frontends.ts";
import type { ReleasedGroup } from "./planner/step.ts";
import { isLeft } from "./planner/treatments.ts";

/** What is read of a conntrack entry; a client that lists them may add fields (`T extends ConntrackFlow`). */
export interface ConntrackFlow {
  /** The family of its addresses. */
  readonly family: IPFamily;
  /** Lower case, as conntrack prints it: tcp, udp, sctp, icmp, … */
  readonly protocol: string;
  /** Canonical address that the client sent to. */
  readonly originalDestination: string;
  /** Absent where the protocol has no ports. */
  readonly originalPort?: number;
  /** Canonical address of the client. Absent: unknown. */
  readonly originalSource?: string;
  /** Canonical address and port that the answer comes from: the endpoint, where the flow was translated. */
  readonly replySource: string;
  /** 1 to 65535; absent where the protocol has no ports. */
  readonly replyPort?: number;
}

/** Further knowledge that narrows what is deleted. */
export interface StaleFlowOptions {
  /**
   * The node's own addresses. With them entries of a node port are cleaned after the last endpoint as well, and packets
   * to that port of another host are not taken for a node port's. Without them, as upstream: whatever was sent to that
   * port, and nothing while there are no serving endpoints.
   */
  readonly nodeAddresses?: { has(address: string): boolean };
}

/**
 * The entries that keep clients on endpoints that are gone: their original destination is one of our frontends and the
 * answer comes from no serving endpoint of it, policies and topology aside. UDP as upstream. SCTP, too, whose
 * heartbeats would keep such an entry for ever, but there every endpoint that still exists counts, ready or not: an
 * association goes on as a TCP connection would. TCP is left: its entries go only where that is asked for (`orphans`).
 * Frontends that are left to another network are not ours. Entries are read once, in any order.
 *
 * @param lookup `Planner.lookup(family)`; flows of the other family are passed over
 */
export function* staleFlows<T extends ConntrackFlow>(
  lookup: FrontendLookup,
  flows: Iterable<T>,
  options: StaleFlowOptions = {},
): Generator<T, void, void> {
  const serving = new ServingIndex();
  for (const flow of flows) {
    const group = groupOf(lookup, flow, options);
    if (group !== undefined && !serving.serves(group, flow)) yield flow;
  }
}

/** An endpoint that a service port had and has no more. */
export interface GoneEndpoint {
  /** `ServicePortGroup.id`. */
  readonly group: string;
  /** Canonical address. */
  readonly address: string;
  /** The endpoint's port, 1 to 65535. */
  readonly port: number;
}

const NONE: ReadonlySet<string> = new Set();

/**
 * The endpoints of TCP ports that a change takes away: no EndpointSlice names them anymore, ready or not. A service
 * that goes as a whole, or to another network, takes none with it: its connections are left to conntrack. Of a planner
 * with `PlannerOptions.resetStaleTCP`; without it those that only turned unready count as gone, too.
 */
export function* goneEndpoints({ groups }: PlanChange): Generator<GoneEndpoint, void, void> {
  for (const [group, { before, after }] of groups) {
    if (before?.protocol !== "TCP" || after === undefined) continue;
    const has = conversing(after);
    // Mostly an endpoint that stays is the same object.
    const same = new Set(has);
    const missing = conversing(before).filter((endpoint) => !same.has(endpoint));
    const left = missing.length === 0 ? NONE : new Set(has.map(endpointKey));
    for (const endpoint of missing) {
      if (!left.has(endpointKey(endpoint))) yield { group, address: endpoint.address, port: endpoint.port };
    }
  }
}

/**
 * Reports which TCP entries keep their clients on such endpoints: their original destination is one of our frontends,
 * and the answer comes from an endpoint that its service port has lost since and that has not come back. Nothing is
 * said of what we never proxied to, so that connections which others translated stay.
 *
 * @param lookup `Planner.lookup(family)`; flows of the other family are passed over
 */
export function orphans(lookup: FrontendLookup, gone: Iterable<GoneEndpoint>): (flow: ConntrackFlow) => boolean {
  const lost = new Map<string, Set<string>>();
  for (const endpoint of gone) {
    const known = lost.get(endpoint.group);
    if (known === undefined) lost.set(endpoint.group, new Set([endpointKey(endpoint)]));
    else known.add(endpointKey(endpoint));
  }
  const serving = new ServingIndex();
  return (flow) => {
    const { family, protocol, originalDestination, originalPort, replySource, replyPort } = flow;
    if (protocol !== "tcp" || family !== lookup.family) return false;
    if (originalPort === undefined || replyPort === undefined) return false;
    const group = lookup.at("TCP", originalDestination, originalPort) ?? lookup.atNodePort("TCP", originalPort);
    if (group === undefined || serving.serves(group, flow)) return false;
    return lost.get(group.id)?.has(endpointKey({ address: replySource, port: replyPort })) ?? false;
  };
}

/**
 * The entries that our own DNAT made for groups which another network has taken over: without deleting them, once, a
 * busy client would stay with us for ever. An entry is ours if it goes to one of the released frontends and is answered
 * by an endpoint that we proxied to, or, where these are unknown, if it was translated to what cannot be the
 * other network's; whatever else goes there is not touched, nor are clients that we go on serving.
 *
 * @param groups `PlanStep.released`
 */
export function* releasedFlows<T extends ConntrackFlow>(
  groups: Iterable<ReleasedGroup>,
  flows: Iterable<T>,
): Generator<T, void, void> {
  const all = [...groups];
  const lookups = { IPv4: frontendLookup("IPv4", all), IPv6: frontendLookup("IPv6", all) } satisfies Record<
    IPFamily,
    unknown
  >;
  const serving = new ServingIndex();
  const clients = new Clients();
  for (const flow of flows) {
    const protocol = connectionless(flow.protocol);
    if (protocol === undefined || flow.originalPort === undefined) continue;
    const lookup = lookups[flow.family];
    const addressed = lookup.at(protocol, flow.originalDestination, flow.originalPort);
    const group = addressed ?? lookup.atNodePort(protocol, flow.originalPort);
    if (group === undefined || !clients.released(group, flow)) continue;
    const ours = group.mayBeForeign === undefined ? serving.serves(group, flow) : isOurs(flow, group.mayBeForeign);
    if (ours) yield flow;
  }
}

/**
 * A lookup over some groups, for callers without a planner (it has one ready: `Planner.lookup`). The cost is
 * that of all their frontends.
 */
export function frontendLookup<Group extends ServicePortGroup>(
  family: IPFamily,
  groups: Iterable<Group>,
): FrontendLookup<Group> {
  const byClaim = new Map<string, Group>();
  for (const group of groups) {
    if (group.family !== family) continue;
    for (const frontend of group.frontends) {
      if (!isLeft(frontend)) byClaim.set(claimKey(group.protocol, frontend.address, frontend.port), group);
    }
  }
  return {
    family,
    at: (protocol: Protocol, address: string, port: number) => byClaim.get(claimKey(protocol, address, port)),
    atNodePort: (protocol: Protocol, port: number) => byClaim.get(claimKey(protocol, undefined, port)),
  };
}

function groupOf(
  lookup: FrontendLookup,
  flow: ConntrackFlow,
  { nodeAddresses }: StaleFlowOptions,
): ServicePortGroup | undefined {
  const protocol = connectionless(flow.protocol);
  const { family, originalDestination, originalPort } = flow;
  if (protocol === undefined || originalPort === undefined || family !== lookup.family) return undefined;
  const addressed = lookup.at(protocol, originalDestination, originalPort);
  if (addressed !== undefined) return addressed;
  const group = lookup.atNodePort(protocol, originalPort);
  return group !== undefined && isOfNodePort(group, flow, nodeAddresses) ? group : undefined;
}

/** By two of three signs where the node's addresses are known: a mode may serve addresses that no interface has. */
function isOfNodePort(
  group: ServicePortGroup,
  { originalDestination, originalPort, replySource, replyPort }: ConntrackFlow,
  nodeAddresses: StaleFlowOptions["nodeAddresses"],
): boolean {
  const served = conversing(group).length > 0;
  if (nodeAddresses === undefined) return served;
  const translated = replySource !== originalDestination || replyPort !== originalPort;
  return nodeAddresses.has(originalDestination) ? served || translated : served && translated;
}

/** The protocols whose entries outlive their endpoint. */
function connectionless(protocol: string): Protocol | undefined {
  if (protocol === "udp") return "UDP";
  return protocol === "sctp" ? "SCTP" : undefined;
}

function isOurs(flow: ConntrackFlow, mayBeForeign: (address: string) => boolean): boolean {
  const { originalDestination, originalPort, replySource, replyPort } = flow;
  const translated = replySource !== originalDestination || replyPort !== originalPort;
  return translated && !mayBeForeign(replySource);
}

/** Whose flows were released: the lists of CIDRs are long, and mostly the same one. */
class Clients {
  readonly #byList = new Map<readonly string[], PrefixMap<object>>();

  /** Also where the client is not known. */
  released({ clients }: ReleasedGroup, { originalSource }: ConntrackFlow): boolean {
    if (clients === undefined || originalSource === undefined) return true;
    return this.#prefixes(clients).find(addressWords(originalSource)) !== undefined;
  }

  #prefixes(clients: readonly string[]): PrefixMap<object> {
    const known = this.#byList.get(clients);
    if (known !== undefined) return known;
    const made = clients.reduce((map, cidr) => map.with(cidr, {}), PrefixMap.empty<object>());
    this.#byList.set(clients, made);
    return made;
  }
}

/** The endpoints that may be in the middle of a conversation with a client of the group. */
function conversing(group: ServicePortGroup): readonly PlanEndpoint[] {
  return group.present ?? group.serving;
}

/** The same for the same endpoint, to look it up. */
function endpointKey({ address, port }: Pick<PlanEndpoint, "address" | "port">): string {
  return `${address} ${port}`;
}

/** Answers whether a flow is answered by such an endpoint of a group; a group's endpoints are read once. */
class ServingIndex {
  readonly #byGroup = new Map<ServicePortGroup, ReadonlySet<string>>();

  serves(group: ServicePortGroup, flow: ConntrackFlow): boolean {
    return this.#endpoints(group).has(`${flow.replySource} ${flow.replyPort}`);
  }

  #endpoints(group: ServicePortGroup): ReadonlySet<string> {
    const known = this.#byGroup.get(group);
    if (known !== undefined) return known;
    const endpoints = new Set(conversing(group).map(endpointKey));
    this.#byGroup.set(group, endpoints);
    return endpoints;
  }
}
