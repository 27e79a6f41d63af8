/** Who owns services, as it changes, and which CIDRs of other networks the endpoints suggest. */

import { contains, familyOf, IP_FAMILIES } from "@fairlead/base";
import type { ClusterView, ServiceKey } from "@fairlead/core";
import {
  LivePlan,
  type LivePlanParts,
  learnedCIDRs,
  type OwnershipRow,
  ownershipReport,
  ownershipRow,
} from "@fairlead/intake";
import { canonicalCIDR } from "@fairlead/netfilter";
import type { ObjectSource } from "@fairlead/watch";
import { factsOf, type Mode } from "./modes/index.ts";

export interface OwnershipListener {
  /** All services, once they are known. */
  readonly onAll: (rows: readonly OwnershipRow[]) => void;
  readonly onChange: (row: OwnershipRow) => void;
  /** A service that is gone in that family. */
  readonly onGone: (row: OwnershipRow) => void;
}

type Request = Pick<LivePlanParts, "config" | "filter" | "networks" | "memory" | "nodeName"> & { readonly mode: Mode };

/**
 * Follows the owners of a source's services until the signal aborts; remembers owners, and learns networks, as the
 * agent does.
 */
export async function followOwnership(
  source: ObjectSource,
  request: Request,
  listener: OwnershipListener,
  signal: AbortSignal,
): Promise<void> {
  const rows = new Map<string, OwnershipRow>();
  const live = new LivePlan({
    ...request,
    mode: factsOf(request.mode),
    purpose: "owners",
    onPlanned: (services) => (services === "all" ? reportAll() : report(services)),
    onMirrored: (service) => report([service]),
  });
  const reportAll = () => {
    const { services } = ownershipReport(live.planner.ownerships(), live.report, live.pods);
    for (const row of services) rows.set(`${row.ipFamily} ${row.service}`, row);
    listener.onAll(services);
  };
  const report = (services: Iterable<ServiceKey>) => {
    const learned = learnedCIDRs(live.report?.cidrs ?? []);
    for (const service of services) {
      for (const family of IP_FAMILIES) {
        const decision = live.planner.ownership(service, family);
        const row = decision && ownershipRow({ service, family, decision }, learned, live.pods);
        reportRow(`${family} ${service}`, row);
      }
    }
  };
  const reportRow = (id: string, row: OwnershipRow | undefined) => {
    const before = rows.get(id);
    if (row === undefined) {
      if (rows.delete(id) && before !== undefined) listener.onGone(before);
    } else if (JSON.stringify(row) !== JSON.stringify(before)) {
      rows.set(id, row);
      listener.onChange(row);
    }
  };
  await live.follow(source, signal);
}

/** A range that looks like the pods of another network. */
export interface SuggestedCIDR {
  readonly cidr: string;
  /** Distinct pod addresses in it. */
  readonly endpoints: number;
  readonly services: number;
}

export interface SuggestFacts {
  /** The CIDRs that are known: the own network's, and those that are excluded already. */
  readonly known: readonly string[];
  /** The node's own addresses: pods on the host's network have such ones. */
  readonly nodeAddresses: readonly string[];
}

/**
 * Other networks' pod CIDRs, as far as endpoints show them: ranges of the usual size that hold addresses of pods, are
 * in no known CIDR and are not the nodes' own. It is a guess for people: the objects do not say where a network ends.
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

/** What pod networks usually have. */
const USUAL_LENGTH = { IPv4: 16, IPv6: 48 } as const;

/** Endpoints without a node are a list of addresses, not pods. */
function podAddresses(state: ClusterView, key: ServiceKey): readonly string[] {
  const endpoints = state.slices(key).flatMap((slice) => slice.endpoints);
  return endpoints.filter(({ nodeName }) => nodeName !== undefined).map(({ address }) => address);
}

function rangeOf(address: string): string {
  return canonicalCIDR(`${address}/${USUAL_LENGTH[familyOf(address)]}`);
}
