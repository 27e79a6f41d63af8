import { IP_FAMILIES, type IPFamily } from "@fairlead/base";
import type { Conflict, NetworksUpdate, SourceState } from "@fairlead/networks";
import type { MetricFactory } from "./registry.ts";

const STATES: readonly SourceState[] = ["waiting", "listed", "empty", "absent", "forbidden", "unreachable"];

/** What is learned of pod networks; only where that is configured. */
export function networkMetrics(make: MetricFactory) {
  const sourceState = make.gauge("fairlead_cidr_source_state", "1 for the state that a source of pod CIDRs is in", [
    "source",
    "state",
  ] as const);
  const excludedCIDRs = make.gauge("fairlead_excluded_cidrs", "Learned CIDRs of other networks in effect", [
    "source",
    "ip_family",
  ] as const);
  const conflicts = make.gauge(
    "fairlead_cidr_conflicts",
    "Learned CIDRs inside a CIDR of the other side; the longest prefix wins",
    [] as const,
  );
  const held = make.gauge(
    "fairlead_held_cidrs",
    "Learned CIDRs of other networks that lie in ours and wait to be accepted",
    [] as const,
  );
  const manyForeign = make.gauge(
    "fairlead_many_foreign_services",
    "1 while more Services than maxForeignPercent are another network's",
    ["ip_family"] as const,
  );
  return {
    setManyForeign(family: IPFamily, isMany: boolean): void {
      manyForeign.set({ ip_family: family }, isMany ? 1 : 0);
    },
    set(found: readonly Conflict[], { sources, counts, held: waiting }: NetworksUpdate): void {
      conflicts.set(found.length);
      held.set(waiting);
      for (const { source, state, side } of sources) {
        for (const one of STATES) sourceState.set({ source, state: one }, one === state ? 1 : 0);
        if (side !== "excluded") continue;
        const counting = counts.get(source);
        for (const family of IP_FAMILIES) excludedCIDRs.set({ source, ip_family: family }, counting?.[family] ?? 0);
      }
    },
  };
}

export type NetworkMetrics = ReturnType<typeof networkMetrics>;
