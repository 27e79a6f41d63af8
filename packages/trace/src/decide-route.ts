import type { RouteAnswer, RouteQuery } from "./environment.ts";
import type { Host } from "./host.ts";
import type { Walk } from "./walk.ts";

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
