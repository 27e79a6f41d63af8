import { systemClock } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import { releaseMemory } from "@fairlead/kernel";
import { version } from "../about/version.ts";
import type { Kernel } from "../host/kernel.ts";
import type { Log } from "../log/log.ts";
import { modes } from "../modes/index.ts";
import { afterStart } from "../sync/after-start.ts";
import { tidying } from "../sync/tidying.ts";
import { keepHeapSmall } from "./engine.ts";
import { lockNode } from "./node-lock.ts";
import { adjustOOMScore } from "./oom-score.ts";
import { prepareNode } from "./prepare-node.ts";
import { runToExit, startProcess } from "./run-process.ts";
import { openSource } from "./source.ts";

/** Serves this node until the process is stopped. Resolves to the exit code. */
export async function runOnNode(config: AgentConfig, kernel: Kernel, log: Log): Promise<number> {
  const { stop, onFullSyncAsked, filter, notes, nodeName, maxClients } = startProcess(config, log);
  await lockNode(config, log);
  const { mode, serviceProxyName } = config;
  const named = serviceProxyName === "" ? {} : { serviceProxyName };
  log.info("Fairlead starts", { version: `v${version}`, mode, node: nodeName, pid: process.pid, ...named });
  const { excludeCIDRs } = filter;
  if (excludeCIDRs.length > 0) log.info("Not proxying services in excluded CIDRs", { excludeCIDRs });
  for (const note of notes) log.info(note);
  await adjustOOMScore(config.oomScoreAdj, log);
  const parts = await prepareNode({ config, filter, nodeName, kernel, modes, openSource, clock: systemClock, log });
  const followers = [afterStart(keepHeapSmall), tidying(systemClock, releaseMemory)];
  const code = await runToExit({ ...parts, onFullSyncAsked, followers, maxClients }, stop);
  if (code === 0) log.info("Fairlead stops; rules stay in place");
  return code;
}
