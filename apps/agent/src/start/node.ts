import { hostname } from "node:os";
import { systemClock } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import { filterSettings } from "@fairlead/intake";
import { releaseMemory } from "@fairlead/kernel";
import { version } from "../about/version.ts";
import { descriptorLimit, descriptorShares } from "../host/descriptors.ts";
import type { Kernel } from "../host/kernel.ts";
import type { Log } from "../log/log.ts";
import { modes } from "../modes/index.ts";
import { runAgent } from "../run/run-agent.ts";
import { afterStart } from "../sync/after-start.ts";
import { tidying } from "../sync/tidying.ts";
import { keepHeapSmall } from "./engine.ts";
import { lockNode } from "./node-lock.ts";
import { adjustOOMScore } from "./oom-score.ts";
import { prepareAgent } from "./prepare.ts";
import { failOnUnhandled, fullSyncSignal, stopSignal } from "./process.ts";
import { openSource } from "./source.ts";
import { StartError } from "./start-error.ts";

/** Serves this node until the process is stopped. Resolves to the exit code. */
export async function runOnNode(config: AgentConfig, kernel: Kernel, log: Log): Promise<number> {
  failOnUnhandled(log);
  const stop = stopSignal(log);
  const onFullSyncAsked = fullSyncSignal(log);
  const filter = filterSettings(config);
  if (!filter.ok) throw new StartError(filter.errors.join("\n"));
  await lockNode(config, log);
  const nodeName = config.hostnameOverride ?? hostname().trim().toLowerCase();
  const { excludeCIDRs } = filter.options;
  const { mode, serviceProxyName } = config;
  const named = serviceProxyName === "" ? {} : { serviceProxyName };
  log.info("Fairlead starts", { version: `v${version}`, mode, node: nodeName, pid: process.pid, ...named });
  if (excludeCIDRs.length > 0) log.info("Not proxying services in excluded CIDRs", { excludeCIDRs });
  for (const note of filter.notes) log.info(note);
  await adjustOOMScore(config.oomScoreAdj, log);
  const parts = await prepareAgent({
    config,
    filter: filter.options,
    nodeName,
    kernel,
    modes,
    openSource,
    clock: systemClock,
    log,
  });
  const reason = await runAgent(
    {
      ...parts,
      onFullSyncAsked,
      followers: [afterStart(keepHeapSmall), tidying(systemClock, releaseMemory)],
      maxClients: descriptorShares(descriptorLimit()).clients,
    },
    stop,
  );
  if (reason === undefined) {
    log.info("Fairlead stops; rules stay in place");
    return 0;
  }
  log.error("Fairlead cannot continue; exiting", { reason });
  return 1;
}
