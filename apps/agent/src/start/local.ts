/** Serves on local ports only, without root: --userspace-only. */

import type { LocalBackend, LocalService } from "@fairlead/backend-userspace";
import { systemClock } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { IPFamily } from "@fairlead/core";
import { version } from "../about/version.ts";
import { localKernel } from "../kernel.ts";
import type { Log } from "../log.ts";
import { localFacts, serveLocally } from "../modes/userspace.ts";
import { setUpNetworks } from "../networks.ts";
import { loadMemory, stateFile } from "../ownership.ts";
import { afterStart, type SyncFollower } from "../sync/follower.ts";
import { keepHeapSmall } from "./engine.ts";
import { runToExit, startProcess } from "./process.ts";
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

/** Prints where each service is to be had: once all families have it, and again whenever it is another place. */
function localTableFollower(
  backends: ReadonlyMap<IPFamily, LocalBackend>,
  print: (text: string) => void,
): SyncFollower {
  const waiting = new Set(backends.keys());
  let printed = "";
  return {
    ran({ family, outcome }) {
      if (outcome.kind === "synced") waiting.delete(family);
      if (waiting.size > 0) return;
      const text = localTable([...backends.values()].flatMap((backend) => backend.services()));
      if (text !== printed) print(text);
      printed = text;
    },
  };
}

/** `SERVICE PROTOCOL LOCAL ADDRESS`, one line each, by name. */
function localTable(services: readonly LocalService[]): string {
  const rows = services.map(({ name, protocol, address, reason }) => [
    name,
    protocol,
    address ?? `none: ${reason ?? ""}`,
  ]);
  rows.sort(([a = ""], [b = ""]) => (a === b ? 0 : a < b ? -1 : 1));
  const lines = [["SERVICE", "PROTOCOL", "LOCAL ADDRESS"], ...rows];
  const width = Math.max(...lines.map(([name = ""]) => name.length));
  return lines
    .map(([name = "", protocol = "", address = ""]) => `${name.padEnd(width)}  ${protocol.padEnd(8)}  ${address}\n`)
    .join("");
}
