import type { IPFamily, Ownership, OwnershipDecision, ServiceKey, ServiceOwnership } from "@fairlead/core";

/** Who serves a Service in one family, and what decided that. */
export interface OwnershipRow {
  readonly service: ServiceKey;
  readonly ipFamily: IPFamily;
  readonly ownership: Ownership;
  readonly why: string;
  readonly decidingCIDRs: readonly string[];
  readonly ownEndpoints: number;
  readonly excludedEndpoints: number;
  readonly frontends: OwnershipDecision["frontends"];
}

/** What the agent's `GET /ownership` says, and `fairlead ownership`: in the order of names, then of families. */
export function ownershipReport(ownerships: Iterable<ServiceOwnership>): {
  readonly services: readonly OwnershipRow[];
} {
  const services = Array.from(ownerships, ownershipRow);
  services.sort((a, b) => compare(a.service, b.service) || compare(a.ipFamily, b.ipFamily));
  return { services };
}

export function ownershipRow({ service, family, decision }: ServiceOwnership): OwnershipRow {
  const { ownership, why, decidingCIDRs, ownEndpoints, excludedEndpoints, frontends } = decision;
  return { service, ipFamily: family, ownership, why, decidingCIDRs, ownEndpoints, excludedEndpoints, frontends };
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
