import { systemClock } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import { version } from "../about/version.ts";
import { localKernel } from "../host/local.ts";
import type { Log } from "../log/log.ts";
import { localFacts, serveLocally } from "../modes/userspace.ts";
import { setUpNetworks } from "../networks/setup.ts";
import { loadMemory } from "../ownership/memory-file.ts";
import { stateFile } from "../ownership/state-file.ts";
import { afterStart } from "../sync/after-start.ts";
import { keepHeapSmall } from "./engine.ts";
import { localTableFollower } from "./local-table.ts";
import { runToExit, startProcess } from "./run-process.ts";
import { openSource } from "./source.ts";

/**
 * Serves on local ports only (--userspace-only): no rule, no root, alongside any other agent. Resolves to the exit
 * code.
 */
export async function runLocal(config: AgentConfig, log: Log, print: (text: string) => void): Promise<number> {
  const { stop, onFullSyncAsked, filter, nodeName, maxClients } = startProcess(config, log);
  log.info("Fairlead serves on local ports", { version: `v${version}`, pid: process.pid });
  const { source } = await openSource(config, nodeName, log);
  const runtime = serveLocally(config, log);
  const parts = {
    config: withoutHealthServer(config),
    filter,
    networks: await setUpNetworks(config, filter, log),
    nodeName,
    kernel: localKernel(),
    mode: localFacts,
    removals: [],
    ...runtime,
    unserved: new Map(),
    maxClients,
    onFullSyncAsked,
    followers: [localTableFollower(runtime.backends, print), afterStart(keepHeapSmall)],
    memory: await loadMemory(stateFile(config.stateDir, "memory"), filter, log),
    source,
    clock: systemClock,
    log,
  } as const;
  return runToExit(parts, stop);
}

/** A developer's proxy has no kubelet that probes it, and the default is every address of the machine. */
function withoutHealthServer(config: AgentConfig): AgentConfig {
  const { healthzBindAddress: _unasked, ...others } = config;
  return config.provenance["healthzBindAddress"] === undefined ? others : config;
}
