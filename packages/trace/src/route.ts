/** Where a packet goes between hooks: routing, delivery, and IPVS. */

import type { VirtualServerState } from "@fairlead/netfilter";
import type { RouteAnswer, RouteQuery } from "./environment.ts";
import type { Host, Share } from "./host.ts";
import type { Outcome } from "./outcome.ts";
import type { Hook } from "./packet.ts";
import { side, type Walk } from "./walk.ts";

/** The hook that follows; undefined: the packet has arrived. The routing decision falls after the translation. */
export function nextHook(walk: Walk, host: Host): Hook | undefined {
  if (walk.sentOn) return "OUTPUT";
  switch (walk.hook) {
    case "PREROUTING":
      return isForHost(walk, host) ? "INPUT" : "FORWARD";
    case "FORWARD":
    case "OUTPUT":
      return "POSTROUTING";
    case "POSTROUTING":
      return walk.inInterface === "" && isForHost(walk, host) ? "PREROUTING" : undefined;
    case "INPUT":
      return undefined;
  }
}

export function enterHook(walk: Walk, hook: Hook): void {
  if (walk.hook === "POSTROUTING" && hook === "PREROUTING") {
    walk.looped = true;
    walk.inInterface = "lo";
    walk.arrived = true;
  }
  if (walk.sentOn) {
    walk.sentOn = false;
    walk.inInterface = "";
  }
  walk.hook = hook;
  walk.step = 0;
  walk.bound = false;
}

/**
 * The interface that the packet leaves by, "" where the kernel knows none yet; undefined: the environment does not say.
 */
export function outInterface(walk: Walk, host: Host): string | undefined {
  if (walk.hook === "PREROUTING" || walk.hook === "INPUT") return "";
  if (walk.routed?.answer.kind === "unicast") return walk.routed.answer.outInterface;
  return isForHost(walk, host) ? "lo" : host.environment.outInterface?.(walk.destination.address);
}

export function pathOf(walk: Walk): NonNullable<Outcome["path"]> {
  if (walk.hook === "INPUT") return "input";
  return walk.arrived ? "forward" : "output";
}

/** Why a packet goes no further. */
export type Refusal = Extract<RouteAnswer, { readonly kind: "refused" }>;

/**
 * The decision that the host's own packet needs before any hook (ip_route_output_flow): without it there is no packet.
 */
export function routeAtStart(walk: Walk, host: Host): Refusal | undefined {
  if (walk.arrived || walk.routed !== undefined) return undefined;
  return decide(walk, host, { source: walk.source.address });
}

/**
 * The decision that falls where the packet leaves a stage: of what came in after PREROUTING (ip_rcv_finish); of the
 * host's own packets anew after a mark in mangle (ipt_mangle_out) or in a chain of type route (nf_route_table_hook4),
 * or a translation in nat (nf_nat_ipv4_local_fn), which fails silently; of what a virtual server sends on
 * (ip_vs_nat_xmit).
 *
 * @param last whether it is the last stage of the hook
 */
export function routeAfterStage(walk: Walk, host: Host, last: boolean): Refusal | undefined {
  if (walk.sentOn) return silent(decide(walk, host, {}));
  if (walk.hook === "PREROUTING") {
    if (!last || walk.looped) return undefined;
    return decide(walk, host, { source: walk.source.address, inInterface: walk.inInterface });
  }
  if (walk.hook !== "OUTPUT" || walk.stage?.reroutes !== true || !isChanged(walk)) return undefined;
  return silent(decide(walk, host, { source: walk.source.address }));
}

/** What ip_vs answers where a server has nowhere to send to (ip_vs_leave). */
export const UNREACHABLE = { IPv4: "icmp-port-unreachable", IPv6: "icmp6-port-unreachable" } as const;

/**
 * What ip_vs makes of a packet (ip_vs_in): the first of a connection to a virtual server gets a destination; all else
 * goes on as it is, and so does what it has sent on before.
 *
 * @param onFork called with the other ways that the packet may take
 * @returns false when the server has no destination that takes new connections: the sender gets an error
 * @throws RangeError for a packet of a connection that is known already: its owner is not in the environment
 */
export function serve(walk: Walk, host: Host, onFork: (other: Walk) => void): boolean {
  if (walk.server !== undefined) return true;
  const { servers } = host;
  const server = servers.find(walk.protocol, walk.destination.address, walk.destination.port);
  if (server === undefined) return true;
  walk.server = server;
  if (walk.state !== "NEW") throw new RangeError("the tracer knows only new connections to virtual servers");
  const [first, ...others] = servers.shares(server, walk.source.address);
  if (first === undefined) return false;
  for (const other of others) {
    const copy = { ...walk };
    take(copy, server, other, host);
    onFork(copy);
  }
  take(walk, server, first, host);
  return true;
}

/** By the routes where they are known (a route of type local is enough), else by the host's addresses. */
function isForHost({ routed, destination }: Walk, host: Host): boolean {
  if (routed === undefined || routed.answer.kind === "unknown") return host.isLocal(destination.words);
  return routed.answer.kind === "local";
}

function isChanged({ routed, destination, mark }: Walk): boolean {
  return routed !== undefined && (routed.destination !== destination.address || routed.mark !== mark);
}

function silent(refusal: Refusal | undefined): Refusal | undefined {
  return refusal && { kind: "refused", problem: refusal.problem };
}

function decide(walk: Walk, host: Host, of: Pick<RouteQuery, "source" | "inInterface">): Refusal | undefined {
  const { family, protocol, destination, source, mark } = walk;
  const answer = host.environment.route?.({
    ...of,
    family,
    destination: destination.address,
    mark,
    protocol,
    ...(source.port !== undefined && { sport: source.port }),
    ...(destination.port !== undefined && { dport: destination.port }),
  });
  if (answer === undefined) return undefined;
  walk.routed = { answer, destination: destination.address, mark };
  if (answer.kind === "unknown") walk.routeUnknown ??= answer.problem;
  return answer.kind === "refused" ? answer : undefined;
}

/** Translates to the destination. What is not for this host begins anew as its own packet (ip_vs_nat_send_or_cont). */
function take(walk: Walk, server: VirtualServerState, { destination, share }: Share, host: Host): void {
  const { address, port } = destination;
  if (server.persistenceSeconds !== undefined) {
    walk.template = { server, client: walk.source.address, destination: { address, port } };
  }
  walk.destination = side(address, port);
  walk.translated = true;
  walk.probability *= share;
  if (!host.servers.tracked) walk.state = "UNTRACKED";
  walk.sentOn = !host.isLocal(walk.destination.words);
}
