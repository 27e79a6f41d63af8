import type { IPFamily, Ownership, OwnershipDecision, ServiceKey, ServiceOwnership } from "@fairlead/core";
import type { CIDRReport, NetworksReport } from "@fairlead/networks";
import { type PodNetwork, type PodNetworkFacts, podNetworkOf } from "./pod-network.ts";

/** Who serves a Service in one family, and what decided that. */
export interface OwnershipRow {
  readonly service: ServiceKey;
  readonly ipFamily: IPFamily;
  readonly ownership: Ownership;
  readonly why: string;
  readonly decidingCIDRs: readonly string[];
  /** Of these CIDRs those that were learned: the objects that say them, and since when they count; absent: none was. */
  readonly learnedFrom?: readonly LearnedCIDR[];
  readonly ownEndpoints: number;
  readonly excludedEndpoints: number;
  readonly frontends: OwnershipDecision["frontends"];
  /** Where its pods are, if nodes do not share that network; absent: they do, or it was not asked. */
  readonly podNetwork?: PodNetwork;
}

export type LearnedCIDR = Pick<CIDRReport, "cidr" | "objects" | "since">;

/**
 * What the agent's `GET /ownership` says, and `fairlead ownership`: in the order of names, then of families.
 *
 * @param pods what says where pods are, for tools. Default: it is not asked
 */
export function ownershipReport(
  ownerships: Iterable<ServiceOwnership>,
  networks?: Pick<NetworksReport, "cidrs">,
  pods?: PodNetworkFacts,
): {
  readonly services: readonly OwnershipRow[];
} {
  const learned = learnedCIDRs(networks?.cidrs ?? []);
  const services = Array.from(ownerships, (one) => ownershipRow(one, learned, pods));
  services.sort((a, b) => compare(a.service, b.service) || compare(a.ipFamily, b.ipFamily));
  return { services };
}

export function ownershipRow(
  { service, family, decision }: ServiceOwnership,
  learned: ReadonlyMap<string, LearnedCIDR> = new Map(),
  pods?: PodNetworkFacts,
): OwnershipRow {
  const { ownership, why, decidingCIDRs, ownEndpoints, excludedEndpoints, frontends } = decision;
  const podNetwork = pods && podNetworkOf(pods, service, family, frontends);
  const learnedFrom = decidingCIDRs.flatMap((cidr) => learned.get(cidr) ?? []);
  return {
    service,
    ipFamily: family,
    ownership,
    why,
    decidingCIDRs,
    ...(learnedFrom.length > 0 && { learnedFrom }),
    ownEndpoints,
    excludedEndpoints,
    frontends,
    ...(podNetwork && { podNetwork }),
  };
}

/** Those that count on the other side; two sources may say one CIDR: then it has the objects of both. */
export function learnedCIDRs(cidrs: readonly CIDRReport[]): ReadonlyMap<string, LearnedCIDR> {
  const found = new Map<string, LearnedCIDR>();
  for (const { cidr, objects, since, side, stage } of cidrs) {
    if (side !== "excluded" || stage !== "effective") continue;
    const before = found.get(cidr);
    const first = earliest(before?.since, since);
    found.set(cidr, { cidr, objects: [...(before?.objects ?? []), ...objects], ...(first && { since: first }) });
  }
  return found;
}

/** Of times as RFC 3339 writes them in one zone. */
function earliest(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a < b ? a : b;
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
