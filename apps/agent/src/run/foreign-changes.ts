import { errorChainText } from "@fairlead/base";
import type { SyncLoop } from "../sync/sync-loop.ts";
import type { Assembled } from "./assemble.ts";
import type { AgentParts } from "./parts.ts";

/** Has what others broke written again at once and not with the next check, where the mode is told of it. */
export async function followForeign(
  { watchForeign, config, log }: Pick<AgentParts, "watchForeign" | "config" | "log">,
  { loop, allSynced }: Pick<Assembled, "allSynced"> & { readonly loop: Pick<SyncLoop, "request" | "requestCheck"> },
  signal: AbortSignal,
): Promise<void> {
  if (watchForeign === undefined) return;
  await allSynced.promise;
  try {
    const changed = () => {
      log.verbose(1, "Somebody else changed the rules: writing all of them again");
      loop.request("full");
    };
    await watchForeign({ changed, lost: () => loop.requestCheck() }, signal);
  } catch (error) {
    log.warn("What others do to the rules is not told any more; it is found by the checks", {
      syncPeriod: `${config.syncPeriodMs}ms`,
      error: errorChainText(error),
    });
  }
}
