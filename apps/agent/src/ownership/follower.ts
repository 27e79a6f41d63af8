import type { DecidedBy, OwnershipChange } from "@fairlead/core";
import type { OwnershipDelay } from "@fairlead/endpoint-filter";
import type { Log } from "../log/log.ts";
import type { AgentMetrics } from "../metrics/agent-metrics.ts";
import type { SyncFollower } from "../sync/follower.ts";
import type { MemoryKeeper } from "./keeper.ts";

/**
 * Keeps the memory, ends the delay of services that are gone, and writes a line for each change of ownership, which it
 * counts.
 */
export function ownershipFollower(
  keeper: MemoryKeeper,
  delay: Pick<OwnershipDelay, "forget">,
  log: Log,
  { ownershipChanges: counter }: Pick<AgentMetrics, "ownershipChanges">,
): SyncFollower {
  return {
    planned({ memory, ownershipChanges }, { services }) {
      keeper.apply(memory);
      delay.forget(memory);
      for (const change of ownershipChanges) {
        const { service, family, from, to, why } = change;
        log.info("Ownership changed", { service, ipFamily: family, from, to, why });
        counter.inc({ from, to, reason: reasonOf(change, services.has(service)) });
      }
    },
  };
}

/** A service whose own objects are as they were has another owner because other CIDRs count now. */
function reasonOf({ decidedBy = "endpoints" }: OwnershipChange, dirty: boolean): DecidedBy | "cidrs" {
  return decidedBy === "endpoints" && !dirty ? "cidrs" : decidedBy;
}
