import { errorChainText } from "@fairlead/base";
import type { SyncLoop } from "../sync/sync-loop.ts";
import type { AgentParts } from "./parts.ts";

/** Has what other processes may have changed looked at now and not with the next check, where the mode follows that. */
export async function followForeign(
  { watchForeign, config, log }: Pick<AgentParts, "watchForeign" | "config" | "log">,
  { loop }: { readonly loop: Pick<SyncLoop, "requestCheck"> },
  signal: AbortSignal,
): Promise<void> {
  try {
    await watchForeign?.({ changed: () => loop.requestCheck() }, signal);
  } catch (error) {
    log.warn("Event stream of rule changes lost; changes by other programs are found by the periodic check", {
      syncPeriod: `${config[config.mode].syncPeriodMs}ms`,
      error: errorChainText(error),
    });
  }
}
