import type { AgentConfig } from "@fairlead/config";
import type { FilterOptions } from "@fairlead/endpoint-filter";
import { componentOf, type NodeEvent, NodeEvents } from "@fairlead/intake";
import { version } from "../about/version.ts";
import { type ConntrackMachine, prepareConntrack } from "../conntrack/prepare.ts";
import type { Kernel } from "../host/kernel.ts";
import type { Log } from "../log/log.ts";
import type { Mode } from "../modes/mode.ts";
import { setUpNetworks } from "../networks/setup.ts";
import { loadMemory } from "../ownership/memory-file.ts";
import { stateFile } from "../ownership/state-file.ts";
import type { AgentParts } from "../run/parts.ts";
import { Progress } from "../sync/progress.ts";
import { chooseMode } from "./choose-mode.ts";
import { openFamilies } from "./families.ts";
import { prepareReplies } from "./replies.ts";
import type { OpenedSource } from "./source.ts";

export interface NodeParts extends Pick<AgentParts, "config" | "filter" | "nodeName" | "clock" | "log"> {
  /** Its iptables are opened once. */
  readonly kernel: Kernel;
  /** All modes that there are. */
  readonly modes: readonly Mode[];
  readonly openSource: (config: AgentConfig, nodeName: string, log: Log) => Promise<OpenedSource>;
  /** Default: the one that this process runs on. */
  readonly machine?: ConntrackMachine;
}

/**
 * Chooses the mode and prepares the node for it.
 *
 * @returns all that the agent is put together from; nothing of it runs yet
 * @throws StartError naming what is missing
 */
export async function prepareNode(parts: NodeParts): Promise<AgentParts> {
  const { config, filter, nodeName, kernel, modes, clock, log } = parts;
  const { mode, fallback } = await chooseMode(modes, config, kernel, log);
  warnOfClients(mode, filter, log);
  // Mostly waiting for processes and files, none of them for another.
  const [{ source, events: eventPort }, { families, unserved }, memory, networks] = await Promise.all([
    parts.openSource(config, nodeName, log),
    openFamilies(mode, kernel, config, log),
    loadMemory(stateFile(config.stateDir, "memory"), filter, log),
    setUpNetworks(config, filter, log),
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
  const replies = await prepareReplies({ config, families, mode: mode.facts, kernel, clock, log });
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
