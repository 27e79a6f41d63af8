import { errorChainText } from "@fairlead/base";
import type { SyncLoop } from "../sync/sync-loop.ts";
import type { Agent, AgentParts } from "./parts.ts";

/** Milliseconds for which somebody who changes them again and again is no news. */
const QUIET_MS = 10_000;

/** Has what others broke written again at once and not with the next check, where the mode is told of it. */
export async function followForeign(
  { watchForeign, config, clock, log }: Pick<AgentParts, "watchForeign" | "config" | "clock" | "log">,
  { loop, allSynced }: Pick<Agent, "allSynced"> & { readonly loop: Pick<SyncLoop, "request" | "requestCheck"> },
  signal: AbortSignal,
): Promise<void> {
  if (watchForeign === undefined) return;
  await allSynced.promise;
  try {
    let quietUntil = 0;
    const changed = (by: string) => {
      if (clock.monotonic() >= quietUntil) log.warn("Another program changed the rules; full sync scheduled", { by });
      quietUntil = clock.monotonic() + QUIET_MS;
      loop.request("full");
    };
    await watchForeign({ changed, lost: () => loop.requestCheck() }, signal);
  } catch (error) {
    log.warn("Event stream of rule changes lost; changes by other programs are found by the periodic check", {
      syncPeriod: `${config[config.mode].syncPeriodMs}ms`,
      error: errorChainText(error),
    });
  }
}
