import { contains, familyOf } from "@fairlead/base";
import type { ClusterView, ServiceKey } from "@fairlead/core";
import { canonicalCIDR } from "@fairlead/netfilter";

/** A range that looks like the pods of another network. */
export interface SuggestedCIDR {
  readonly cidr: string;
  /** Distinct pod addresses in it. */
  readonly endpoints: number;
  /** Services with endpoints in it. */
  readonly services: number;
}

export interface SuggestFacts {
  /** The CIDRs that are known: the own network's, and those that are excluded already. */
  readonly known: readonly string[];
  /** The node's own addresses: pods on the host's network have such ones. */
  readonly nodeAddresses: readonly string[];
}

/** What pod networks usually have. */
const USUAL_LENGTH = { IPv4: 16, IPv6: 48 } as const;

/**
 * Other networks' pod CIDRs, as far as endpoints show them: ranges of the usual size that hold addresses of pods, are
 * in no known CIDR and are not the nodes' own. It is a guess for people: the objects do not tell where a network ends.
 */
export function suggestCIDRs(state: ClusterView, { known, nodeAddresses }: SuggestFacts): readonly SuggestedCIDR[] {
  const nodes = new Set(nodeAddresses.map(rangeOf));
  const found = new Map<string, { readonly addresses: Set<string>; readonly services: Set<string> }>();
  for (const key of state.keys()) {
    for (const address of podAddresses(state, key)) {
      const cidr = rangeOf(address);
      if (nodes.has(cidr) || known.some((one) => contains(one, address))) continue;
      const range = found.get(cidr) ?? { addresses: new Set(), services: new Set() };
      range.addresses.add(address);
      range.services.add(key);
      found.set(cidr, range);
    }
  }
  const ranges = Array.from(found, ([cidr, { addresses, services }]) => {
    return { cidr, endpoints: addresses.size, services: services.size };
  });
  return ranges.sort((a, b) => b.endpoints - a.endpoints || (a.cidr < b.cidr ? -1 : 1));
}

/** Endpoints without a node are a list of addresses, not pods. */
function podAddresses(state: ClusterView, key: ServiceKey): readonly string[] {
  const endpoints = state.slices(key).flatMap((slice) => slice.endpoints);
  return endpoints.filter(({ nodeName }) => nodeName !== undefined).map(({ address }) => address);
}

function rangeOf(address: string): string {
  return canonicalCIDR(`${address}/${USUAL_LENGTH[familyOf(address)]}`);
}
