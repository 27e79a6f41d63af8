import type { EndpointFilter, OwnershipDecision } from "../src/index.ts";

/** The other network's addresses, IPv4 and IPv6. */
export function isForeign(address: string): boolean {
  return address.startsWith("10.244.") || address.startsWith("fd00:244:");
}

/** Decides as the real filter's defaults do; `leave` says what it leaves of a foreign service. */
export function fakeFilter(leave: keyof typeof OF_FOREIGN = "all"): EndpointFilter {
  return {
    isForeign,
    decide: (service, _family, endpoints, remembered): OwnershipDecision => {
      const distinct = [...new Set(Array.from(endpoints, ({ address }) => address))];
      const excludedEndpoints = distinct.filter(isForeign).length;
      const ownEndpoints = distinct.length - excludedEndpoints;
      const decided = distinct.length > 0;
      const seen = excludedEndpoints === 0 ? "ours" : ownEndpoints === 0 ? "foreign" : "mixed";
      const ownership = decided ? seen : (remembered ?? "ours");
      const annotation = service.annotations["fairlead.dev/ownership"];
      return {
        ownership,
        decided,
        why: `${ownEndpoints} own, ${excludedEndpoints} excluded`,
        frontends: ownership === "foreign" ? OF_FOREIGN[leave] : "all",
        ...(ownership === "mixed" ? { excludes: ({ address }) => isForeign(address) } : {}),
        decidingCIDRs: excludedEndpoints > 0 ? ["10.244.0.0/16"] : [],
        ownEndpoints,
        excludedEndpoints,
        ...(annotation === undefined ? {} : { problem: `annotation ${annotation} means nothing` }),
      };
    },
  };
}

const OF_FOREIGN = {
  all: "none",
  "cluster-ip": "all-but-cluster-ip",
  "excluded-clients": "all-but-excluded-clients",
} as const;
