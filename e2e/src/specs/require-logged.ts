import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { until } from "./until.ts";

/** Waits for a line in an agent's log. @throws Error with the log when no such line comes */
export async function requireLogged(
  { agent }: Pick<ClusterNode, "agent">,
  wanted: (line: string) => boolean,
): Promise<void> {
  await until("a line in the agent's log", async () => {
    const log = await agent.log();
    return log.split("\n").some(wanted) ? undefined : `no such line:\n${log}`;
  });
}
