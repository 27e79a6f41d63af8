import type { IPFamily, Ownership, OwnershipDecision, ServiceKey, ServiceOwnership } from "@fairlead/core";
import type { CIDRReport, NetworksReport } from "@fairlead/networks";

/** Who serves a Service in one family, and what decided that. */
export interface OwnershipRow {
  readonly service: ServiceKey;
  readonly ipFamily: IPFamily;
  readonly ownership: Ownership;
  readonly why: string;
  readonly decidingCIDRs: readonly string[];
  /** Of these CIDRs those that were learnt: the objects that say them, and since when they count; absent: none was. */
  readonly learntFrom?: readonly LearntCIDR[];
  readonly ownEndpoints: number;
  readonly excludedEndpoints: number;
  readonly frontends: OwnershipDecision["frontends"];
}

/** A CIDR that decides, and where it came from. */
export type LearntCIDR = Pick<CIDRReport, "cidr" | "objects" | "since">;

/** What the agent's `GET /ownership` says, and `fairlead ownership`: in the order of names, then of families. */
export function ownershipReport(
  ownerships: Iterable<ServiceOwnership>,
  networks?: Pick<NetworksReport, "cidrs">,
): {
  readonly services: readonly OwnershipRow[];
} {
  const learnt = learntCIDRs(networks?.cidrs ?? []);
  const services = Array.from(ownerships, (one) => ownershipRow(one, learnt));
  services.sort((a, b) => compare(a.service, b.service) || compare(a.ipFamily, b.ipFamily));
  return { services };
}

export function ownershipRow(
  { service, family, decision }: ServiceOwnership,
  learnt: ReadonlyMap<string, LearntCIDR> = new Map(),
): OwnershipRow {
  const { ownership, why, decidingCIDRs, ownEndpoints, excludedEndpoints, frontends } = decision;
  const learntFrom = decidingCIDRs.flatMap((cidr) => learnt.get(cidr) ?? []);
  return {
    service,
    ipFamily: family,
    ownership,
    why,
    decidingCIDRs,
    ...(learntFrom.length > 0 && { learntFrom }),
    ownEndpoints,
    excludedEndpoints,
    frontends,
  };
}

/** Those that count on the other side; two sources may say one CIDR: then it has the objects of both. */
export function learntCIDRs(cidrs: readonly CIDRReport[]): ReadonlyMap<string, LearntCIDR> {
  const found = new Map<string, LearntCIDR>();
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
