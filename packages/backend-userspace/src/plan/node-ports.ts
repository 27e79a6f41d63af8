import type { EndpointSetName, Frontend, ServicePortGroup } from "@fairlead/core";
import { proxied } from "./relays.ts";

/** Plain questions about a group that has its node port relayed, and nothing else. */

export function nodePort({ frontends }: ServicePortGroup): number | undefined {
  return frontends.find(isNodePort)?.port;
}

/**
 * The set behind its node port, where that has endpoints: as for clients from outside, since upstream's relay leads to
 * endpoints of this node only under external traffic policy Local (pkg/proxy/nftables/proxier.go). Only TCP is
 * relayed, as upstream.
 */
export function nodePortSets(group: ServicePortGroup): readonly EndpointSetName[] {
  if (group.protocol !== "TCP") return [];
  const treatment = group.frontends.find(isNodePort)?.treatments.outside;
  return treatment !== undefined && proxied(treatment) && group[treatment.set].length > 0 ? [treatment.set] : [];
}

function isNodePort({ at }: Frontend): boolean {
  return at === "node-port";
}
