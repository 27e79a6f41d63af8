import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../../frame/context.ts";

/** How long a full sync may take, and how often is looked whether it is done. */
const PATIENCE_MS = 60_000;
const INTERVAL_MS = 1_000;

/** What is needed to repair a node. */
export interface Repair<Report> {
  /** Asks the node's agent for a full sync. */
  readonly ask: () => Promise<void>;
  /** Compares again. */
  readonly look: () => Promise<Report>;
  readonly differs: (report: Report) => boolean;
}

/**
 * Asks an agent for a full sync and looks until nothing differs anymore, or a minute is over.
 *
 * @returns what was seen last
 * @throws CommandFailure when there is no agent, or it may not be notified
 */
export async function askForFullSync<Report>(
  before: Report,
  { ask, look, differs }: Repair<Report>,
  context: Pick<Context, "progress" | "signal">,
): Promise<Report> {
  await ask();
  return context.progress("waiting for the agent's full sync", async () => {
    let report = before;
    const deadline = performance.now() + PATIENCE_MS;
    while (differs(report) && performance.now() < deadline) {
      await sleep(INTERVAL_MS, undefined, { signal: context.signal });
      report = await look();
    }
    return report;
  });
}
