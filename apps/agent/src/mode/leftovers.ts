import type { IPFamily } from "@fairlead/core";
import type { Kernel } from "../kernel/kernel.ts";
import { describeError, type Log } from "../log/log.ts";
import type { SyncFollower } from "../sync/syncer.ts";

/** Once all families serve, removes what another mode of kube-proxy left: before that it still does the serving. */
export function leftoversFollower(
  kernel: Pick<Kernel, "removeNftTables">,
  families: readonly IPFamily[],
  log: Log,
): SyncFollower {
  const waiting = new Set(families);
  return {
    async ran({ family, outcome }) {
      if (outcome.kind !== "synced" || !waiting.delete(family) || waiting.size > 0) return;
      await removeLeftovers(kernel, log);
    },
  };
}

/** Returns whether nothing is left, as far as can be seen. */
export async function removeLeftovers(kernel: Pick<Kernel, "removeNftTables">, log: Log): Promise<boolean> {
  try {
    for (const table of await kernel.removeNftTables())
      log.info("Removed what kube-proxy's nftables mode left", { table });
    return true;
  } catch (error) {
    log.warn("Cannot look for what kube-proxy's nftables mode left", { error: describeError(error) });
    return false;
  }
}
