/** What the process was started for: to serve with rules or on local ports only, to prepare a node, to clean up. */

import type { LocalBackend, LocalService } from "@fairlead/backend-userspace";
import { errorChainText, IP_FAMILIES, systemClock } from "@fairlead/base";
import { type AgentConfig, REPLY_TABLE } from "@fairlead/config";
import type { IPFamily } from "@fairlead/core";
import { version } from "../about/version.ts";
import { prepareConntrack } from "../conntrack.ts";
import { type Kernel, localKernel, openedOnce } from "../kernel.ts";
import type { Log } from "../log.ts";
import { modes } from "../modes/index.ts";
import { errorTexts, removeTables } from "../modes/leftovers.ts";
import type { ModeRemoval } from "../modes/mode.ts";
import { localFacts, serveLocally } from "../modes/userspace.ts";
import { setUpNetworks } from "../networks.ts";
import { loadMemory, stateFile } from "../ownership.ts";
import { realKernel } from "../real-kernel.ts";
import { removeReplyRouting } from "../reply-routing.ts";
import { afterStart, type SyncFollower } from "../sync/follower.ts";
import { chooseMode, openFamilies } from "./choose-mode.ts";
import { heapSnapshotSignal, keepHeapSmall } from "./engine.ts";
import { lockNode, runOnNode } from "./node.ts";
import { logged, runToExit, startProcess, writeConfig } from "./process.ts";
import { openSource } from "./source.ts";

/** Does what the process was started for; resolves to its exit code. */
export const runAction = logged(act);

/** Removes what kube-proxy and Fairlead left in the kernel, in both families. Resolves to the exit code. */
export async function cleanUp(removals: readonly ModeRemoval[], kernel: Kernel, log: Log): Promise<number> {
  let failed = false;
  for (const family of IP_FAMILIES) {
    const errors = await cleanFamily(removals, kernel, family, log);
    if (errors.length === 0) log.info("Removed the iptables rules", { ipFamily: family });
    else {
      failed = true;
      log.error("Failed to remove the iptables rules", { ipFamily: family, errors });
    }
  }
  const nothingLeft = await removeTables(removals, kernel, "", log);
  const routed = await removeReplies(kernel, log);
  return failed || !nothingLeft || !routed ? 1 : 0;
}

async function act(config: AgentConfig, log: Log, out: (text: string) => void): Promise<number> {
  const { action } = config;
  if (action.kind === "write-config") {
    writeConfig(action.path, action.text);
    return 0;
  }
  if (action.kind === "run") heapSnapshotSignal(config, log);
  if (action.kind === "run" && config.userspace.only) return runLocal(config, log, out);
  const kernel = openedOnce(realKernel(log));
  if (action.kind === "cleanup") {
    await lockNode(config, log);
    return config.serviceProxyName === ""
      ? cleanUp(modes, kernel, log)
      : cleanUpInstance(modes, kernel, config.serviceProxyName, log);
  }
  if (action.kind === "run") return runOnNode(config, kernel, log);
  await initialize(config, kernel, log);
  log.info("System initialized and --init-only specified");
  return 0;
}

async function initialize(config: AgentConfig, kernel: Kernel, log: Log): Promise<void> {
  const { mode } = await chooseMode(modes, config, kernel, log);
  await openFamilies(mode, kernel, config, log);
  await prepareConntrack(config.conntrack, kernel.sysctl, log);
  await mode.prepare?.(config, kernel, log);
}

/** @returns false: something could not be removed */
async function removeReplies(kernel: Kernel, log: Log): Promise<boolean> {
  try {
    const marks = (await kernel.hasNftTable(REPLY_TABLE)) === true ? await kernel.nftables() : undefined;
    if (await removeReplyRouting(kernel.routing, marks)) log.info("Removed reply routing");
    return true;
  } catch (error) {
    log.error("Failed to remove reply routing; run --cleanup again", { error: errorChainText(error) });
    return false;
  }
}

/** Removes what an agent with a name left, and nothing of the node's first proxy. Resolves to the exit code. */
async function cleanUpInstance(
  removals: readonly ModeRemoval[],
  kernel: Pick<Kernel, "removeNftTables">,
  serviceProxyName: string,
  log: Log,
): Promise<number> {
  return (await removeTables(removals, kernel, serviceProxyName, log)) ? 0 : 1;
}

/**
 * Both variants of iptables are cleaned, as far as they are in use: it is unknown which one was, when the rules were
 * made.
 */
async function cleanFamily(
  removals: readonly ModeRemoval[],
  kernel: Kernel,
  family: IPFamily,
  log: Log,
): Promise<readonly string[]> {
  const errors = new Set<string>();
  const attempt = (work: () => Promise<void>) =>
    work().catch((error: unknown) => {
      for (const text of errorTexts(error)) errors.add(text);
    });
  await attempt(async () => {
    for (const rules of await kernel.iptablesInUse(family)) {
      for (const { facts, removeRules } of removals) {
        await attempt(async () => {
          const there = await removeRules?.(kernel, rules);
          if (there === true) log.info(`Removed stale objects of ${facts.name} mode`, { ipFamily: family });
        });
      }
    }
  });
  return [...errors];
}

/**
 * Serves on local ports only (--userspace-only): no rule, no root, alongside any other agent. Resolves to the exit
 * code.
 */
async function runLocal(config: AgentConfig, log: Log, print: (text: string) => void): Promise<number> {
  const { stop, onFullSyncAsked, filter, nodeName, maxClients } = startProcess(config, log);
  log.info("Fairlead serves on local ports", { version: `v${version}`, pid: process.pid });
  const { source, kubeconfig } = await openSource(config, nodeName, log);
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
    kubeconfig,
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
