import { inAnyOf, isLoopback, prefixLengthOf } from "@fairlead/base";
import type { Frontend, NodePlan, ServicePortGroup } from "@fairlead/core";
import { type Probe, probesFrom, probesOf } from "../packets/probes.ts";
import { addressIn, OUTER_INTERFACE, podInterface, type Source } from "../packets/sources.ts";

/** Hairpins cost a packet for each frontend and endpoint: a node runs some hundred pods at most. */
const MOST_HAIRPINS = 16;

/**
 * Every kind of packet that tells one treatment of a group from another: from each class of sources, from an address of
 * each source range, and from the endpoints of this node, which may come to themselves.
 *
 * @param nodeAddress where node ports are asked for, and the source of the node's own packets; absent: neither is
 */
export function* allProbesOf(
  group: ServicePortGroup,
  node: NodePlan,
  nodeAddress: string | undefined,
): Generator<Probe, void, void> {
  yield* probesOf(group, node, nodeAddress);
  const hairpins = hairpinSources(group, node, nodeAddress);
  yield* probesFrom(group, node, nodeAddress, (frontend) => [...hairpins, ...allowedSources(frontend, node)]);
}

function hairpinSources(group: ServicePortGroup, node: NodePlan, nodeAddress: string | undefined): readonly Source[] {
  const { detector } = node;
  const pods = detector.kind === "cidrs" ? inAnyOf(detector.cidrs) : () => detector.kind !== "none";
  const here = [...group.local, ...group.cluster].filter(({ local }) => local);
  const addresses = [...new Set(here.map(({ address }) => address))];
  return addresses
    .filter((address) => address !== nodeAddress && !isLoopback(address))
    .slice(0, MOST_HAIRPINS)
    .map((address) => ({ class: pods(address) ? "pod" : "outside", address, inInterface: podInterface(detector) }));
}

/** A sender of each range that is neither a pod of this node nor on it. */
function allowedSources({ gate }: Frontend, { detector }: NodePlan): readonly Source[] {
  const isPod = inAnyOf(detector.kind === "cidrs" ? detector.cidrs : []);
  const wide = (gate?.ranges ?? []).filter((range) => prefixLengthOf(range) > 0);
  return wide
    .map(addressIn)
    .filter((address) => !isPod(address))
    .map((address) => ({ class: "outside", address, inInterface: OUTER_INTERFACE }));
}
