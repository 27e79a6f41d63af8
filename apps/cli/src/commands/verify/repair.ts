import { setTimeout as sleep } from "node:timers/promises";
import { errorText } from "@fairlead/base";
import { nodeLockProcess } from "@fairlead/kernel";
import type { Context } from "../../frame/context.ts";
import { CommandFailure } from "../../frame/errors.ts";

/** How long a full sync may take, and how often is looked whether it is done. */
const PATIENCE_MS = 60_000;
const INTERVAL_MS = 1_000;

/**
 * Asks the agent of this host for a full sync and looks until nothing differs any more, or a minute is over.
 *
 * @returns what was seen last
 * @throws CommandFailure when there is no agent, or it may not be told
 */
export async function askForFullSync<Report>(
  before: Report,
  look: () => Promise<Report>,
  differs: (report: Report) => boolean,
  context: Pick<Context, "progress" | "signal">,
): Promise<Report> {
  const pid = await nodeLockProcess();
  if (pid === undefined)
    throw new CommandFailure(
      "--repair: no agent of Fairlead is seen on this host (as root, in the host's network and process namespaces); other proxies cannot be asked",
    );
  notify(pid);
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

function notify(pid: number): void {
  try {
    process.kill(pid, "SIGUSR2");
  } catch (error) {
    throw new CommandFailure(`--repair: process ${pid} cannot be told: ${errorText(error)}`, { cause: error });
  }
}
