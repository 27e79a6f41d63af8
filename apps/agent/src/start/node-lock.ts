import { resolve } from "node:path";
import { errorChainText } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import { acquireNodeLock, type NodeLock } from "@fairlead/kernel";
import { version } from "../about/version.ts";
import type { Log } from "../log/log.ts";
import { StartError } from "./start-error.ts";

/**
 * Where all agents of a host know of one another; those in containers have the node's state folder in common at least.
 */
const HOST_FOLDER = "/run/fairlead";

/**
 * Makes this process the one agent of its node until it ends; alongside it there may be one for each service proxy
 * name.
 *
 * @throws StartError naming the agent that there is
 */
export async function lockNode(
  { serviceProxyName, stateDir }: Pick<AgentConfig, "serviceProxyName" | "stateDir">,
  log: Log,
): Promise<void> {
  const shared = serviceProxyName === "" ? HOST_FOLDER : `${HOST_FOLDER}/instances/${serviceProxyName}`;
  const folders = stateDir === "" ? [shared] : [shared, resolve(stateDir)];
  try {
    const lock = await acquireNodeLock({ version, startedAt: Date.now(), folders, instance: serviceProxyName });
    warnOfDoubt(lock, log);
  } catch (error) {
    throw new StartError(errorChainText(error), { cause: error });
  }
}

/** With the lock, a sign of another agent asks for a look at the node; without it, another would not be detected. */
export function warnOfDoubt({ held, doubt }: Pick<NodeLock, "held" | "doubt">, log: Pick<Log, "warn">): void {
  if (doubt === undefined) return;
  log.warn(
    held
      ? "Another agent may be running on this node; the node lock is held, both may write the same rules"
      : "Cannot detect other agents on this node; serving without the node lock",
    { reason: doubt },
  );
}
