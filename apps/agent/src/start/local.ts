import { hostname } from "node:os";
import { systemClock } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import { filterSettings } from "@fairlead/intake";
import { version } from "../about/version.ts";
import { descriptorLimit, descriptorShares } from "../host/descriptors.ts";
import { localKernel } from "../host/local.ts";
import type { Log } from "../log/log.ts";
import { localFacts, serveLocally } from "../modes/userspace.ts";
import { setUpNetworks } from "../networks/setup.ts";
import { loadMemory } from "../ownership/memory-file.ts";
import { stateFile } from "../ownership/state-file.ts";
import { runAgent } from "../run/run-agent.ts";
import { afterStart } from "../sync/after-start.ts";
import { keepHeapSmall } from "./engine.ts";
import { localTableFollower } from "./local-table.ts";
import { failOnUnhandled, stopSignal } from "./process.ts";
import { openSource } from "./source.ts";
import { StartError } from "./start-error.ts";

/**
 * Serves on local ports only (--userspace-only): no rule, no root, beside any other agent. Resolves to the exit code.
 */
export async function runLocal(config: AgentConfig, log: Log, print: (text: string) => void): Promise<number> {
  failOnUnhandled(log);
  const stop = stopSignal(log);
  const filter = filterSettings(config);
  if (!filter.ok) throw new StartError(filter.errors.join("\n"));
  const nodeName = config.hostnameOverride ?? hostname().trim().toLowerCase();
  log.info("Fairlead serves on local ports", { version: `v${version}`, pid: process.pid });
  const { source } = await openSource(config, nodeName, log);
  const serving = serveLocally(config, log);
  const parts = {
    config: withoutHealthServer(config),
    filter: filter.options,
    networks: await setUpNetworks(config, filter.options, log),
    nodeName,
    kernel: localKernel(),
    mode: localFacts,
    removals: [],
    ...serving,
    unserved: new Map(),
    maxClients: descriptorShares(descriptorLimit()).clients,
    followers: [localTableFollower(serving.backends, print), afterStart(keepHeapSmall)],
    memory: await loadMemory(stateFile(config.stateDir, "memory"), filter.options, log),
    source,
    clock: systemClock,
    log,
  } as const;
  const reason = await runAgent(parts, stop);
  if (reason === undefined) return 0;
  log.error("Fairlead cannot continue; exiting", { reason });
  return 1;
}

/** Nobody probes a developer's proxy, and its default is every address of the machine. */
function withoutHealthServer(config: AgentConfig): AgentConfig {
  const { healthzBindAddress: _unasked, ...others } = config;
  return config.provenance["healthzBindAddress"] === undefined ? others : config;
}
