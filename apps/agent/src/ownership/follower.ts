import type { Log } from "../log/log.ts";
import type { SyncFollower } from "../sync/follower.ts";
import type { MemoryKeeper } from "./keeper.ts";

/** Keeps the memory, and writes a line for each change of ownership. */
export function ownershipFollower(keeper: MemoryKeeper, log: Log): SyncFollower {
  return {
    planned({ memory, ownershipChanges }) {
      keeper.apply(memory);
      for (const { service, family, from, to, why } of ownershipChanges) {
        log.info("Ownership changed", { service, ipFamily: family, from, to, why });
      }
    },
  };
}
