import type { ServiceOwnership } from "@fairlead/core";

/** What `GET /ownership` says: for each Service and family who serves it, and what decided that. */
export function ownershipReport(ownerships: Iterable<ServiceOwnership>) {
  const services = Array.from(ownerships, ({ service, family, decision }) => ({
    service,
    ipFamily: family,
    ownership: decision.ownership,
    why: decision.why,
    decidingCIDRs: decision.decidingCIDRs,
    ownEndpoints: decision.ownEndpoints,
    excludedEndpoints: decision.excludedEndpoints,
    frontends: decision.frontends,
  }));
  services.sort((a, b) => compare(a.service, b.service) || compare(a.ipFamily, b.ipFamily));
  return { services };
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
