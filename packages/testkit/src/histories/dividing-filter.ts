import type { EndpointFilter, OwnershipDecision } from "@fairlead/core";

/** Every second slot is another network's, which serves clients in these CIDRs itself. */
export function dividingFilter(excludedClients: readonly string[]): EndpointFilter {
  return {
    excludedClients: () => excludedClients,
    decide({ name }): OwnershipDecision {
      const foreign = Number(name.split("-").at(-1)) % 2 === 1;
      return {
        ownership: foreign ? "foreign" : "ours",
        decided: true,
        why: "slots are divided",
        frontends: foreign ? "all-but-excluded-clients" : "all",
        decidingCIDRs: [],
        ownEndpoints: 0,
        excludedEndpoints: 0,
      };
    },
  };
}
