/** Serves this node: its lock, and all that is prepared before the first sync. */

import { resolve } from "node:path";
import { errorChainText, type IPFamily, systemClock, type Timers } from "@fairlead/base";
import { type AgentConfig, REPLY_TABLE } from "@fairlead/config";
import type { ModeFacts } from "@fairlead/core";
import type { FilterOptions } from "@fairlead/endpoint-filter";
import { componentOf, type NodeEvent, NodeEvents } from "@fairlead/intake";
import { acquireNodeLock, type NodeLock, releaseMemory } from "@fairlead/kernel";
import { version } from "../about/version.ts";
import { type ConntrackMachine, prepareConntrack } from "../conntrack.ts";
import type { Kernel } from "../kernel.ts";
import type { Log } from "../log.ts";
import { modes } from "../modes/index.ts";
import type { Mode } from "../modes/mode.ts";
import { setUpNetworks } from "../networks.ts";
import { loadMemory, stateFile } from "../ownership.ts";
import { ReplyRouting, removeReplyRouting } from "../reply-routing.ts";
import type { AgentParts } from "../run/parts.ts";
import { afterStart, Progress, tidying } from "../sync/follower.ts";
import { chooseMode, openFamilies } from "./choose-mode.ts";
import { keepHeapSmall } from "./engine.ts";
import { adjustOOMScore, runToExit, StartError, startProcess } from "./process.ts";
import { type OpenedSource, openSource } from "./source.ts";

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

/**
 * Where all agents of a host know of one another; those in containers have the node's state folder in common at least.
 */
const HOST_FOLDER = "/run/fairlead";

/**
 * Makes this process the one agent of its node until it ends; alongside it there may be one for each service proxy
 * name.
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

interface NodeParts extends Pick<AgentParts, "config" | "filter" | "nodeName" | "clock" | "log"> {
  /** Its iptables are opened once. */
  readonly kernel: Kernel;
  readonly modes: readonly Mode[];
  readonly openSource: (config: AgentConfig, nodeName: string, log: Log) => Promise<OpenedSource>;
  /** Default: the one that this process runs on. */
  readonly machine?: ConntrackMachine;
}

/**
 * Chooses the mode and prepares the node for it. All that can be wrong is found before the kernel is changed: what
 * cannot start leaves the node as it is.
 */
export async function prepareNode(parts: NodeParts): Promise<AgentParts> {
  const { config, filter, nodeName, kernel, modes, clock, log } = parts;
  const [{ source, kubeconfig, events: eventPort }, memory, networks] = await Promise.all([
    parts.openSource(config, nodeName, log),
    loadMemory(stateFile(config.stateDir, "memory"), filter, log),
    setUpNetworks(config, filter, log),
  ]);
  const { mode, fallback } = await chooseMode(modes, config, kernel, log);
  warnOfClients(mode, filter, log);
  const { families, unserved } = await openFamilies(mode, kernel, config, log);
  const replies = await prepareReplies({ config, families, mode: mode.facts, kernel, clock, log });
  await Promise.all([
    prepareConntrack(config.conntrack, kernel.sysctl, log, parts.machine),
    mode.prepare?.(config, kernel, log),
  ]);
  const component = componentOf(config.serviceProxyName);
  const events = eventPort && new NodeEvents({ node: nodeName, component, ...eventPort, clock, log });
  void events?.report(startingEvent());
  const progress = new Progress();
  const runtime = await mode.serve({ config, families, kernel, log, progress });
  for (const notice of [mode.notice?.(config), runtime.notice]) {
    if (notice === undefined) continue;
    log[notice.type === "Warning" ? "warn" : "info"](notice.message);
    void events?.report({ ...notice, action: "StartKubeProxy" });
  }
  if (fallback !== undefined) void events?.report(fallbackEvent(config.mode, mode.facts.name, fallback));
  return {
    config,
    filter,
    networks,
    nodeName,
    kernel,
    mode: mode.facts,
    fallback,
    // What other modes left is the first proxy's, which may be using it.
    removals: config.serviceProxyName === "" ? modes : [],
    ...runtime,
    progress,
    replies,
    unserved,
    memory,
    source,
    kubeconfig,
    events,
    clock,
    log,
  };
}

/** In such a mode an address belongs to the node for every sender. */
function warnOfClients({ facts }: Mode, { excludedFrontends }: FilterOptions, log: Log): void {
  if (excludedFrontends !== "excluded-clients" || facts.semantics.excludesClients) return;
  log.warn(
    `${facts.name} mode cannot distinguish the clients of an address: it leaves ClusterIPs of services of other networks to them ` +
      "for all clients, as by --excluded-frontends=cluster-ip; node ports, external and load-balancer addresses are served",
  );
}

/** kube-proxy's, at each start. */
function startingEvent(): NodeEvent {
  return { type: "Normal", reason: "Starting", action: "StartKubeProxy", message: `Fairlead v${version}` };
}

function fallbackEvent(asked: string, served: string, reason: string): NodeEvent {
  const message = `${asked} mode is not available on this node, which is served in ${served} mode: ${reason}`;
  return { type: "Warning", reason: "ModeFallback", message };
}

interface ReplyParts {
  readonly config: AgentConfig;
  readonly families: readonly IPFamily[];
  readonly mode: ModeFacts;
  readonly kernel: Pick<Kernel, "routing" | "nftables" | "hasNftTable">;
  readonly clock: Timers;
  readonly log: Log;
}

/**
 * What keeps answers on the interface that their client came in by; undefined where that is not asked for, and then
 * what an earlier agent has left of it is removed.
 */
async function prepareReplies(parts: ReplyParts): Promise<ReplyRouting | undefined> {
  const { config, families, mode, kernel, clock, log } = parts;
  const { replyVia: settings, serviceProxyName } = config;
  if (settings === undefined) {
    // Of the node's first proxy only: a second one has no such table.
    if (serviceProxyName === "" && (await kernel.hasNftTable(REPLY_TABLE))) await removeStale(kernel, log);
    return undefined;
  }
  return new ReplyRouting({
    settings,
    families,
    translates: mode.takesIn !== true,
    routing: kernel.routing,
    nftables: await kernel.nftables().catch((error: unknown) => {
      throw new StartError(
        `replyVia marks connections with nf_tables, which cannot be reached: ${errorChainText(error)}`,
      );
    }),
    intervalMs: config[config.mode].syncPeriodMs,
    timers: clock,
    log,
  });
}

async function removeStale(kernel: ReplyParts["kernel"], log: Log): Promise<void> {
  try {
    await removeReplyRouting(kernel.routing, await kernel.nftables());
    log.info("Removed stale reply routing");
  } catch (error) {
    log.warn(
      "Failed to remove stale reply routing; answers may leave by another interface, retrying at the next start",
      {
        error: errorChainText(error),
      },
    );
  }
}
