import { writeFileSync } from "node:fs";
import { hostname } from "node:os";
import type { AgentConfig } from "@fairlead/config";
import { filterSettings } from "@fairlead/intake";
import { releaseMemory } from "@fairlead/kernel";
import { systemClock } from "../clock.ts";
import { prepareConntrack } from "../conntrack/prepare.ts";
import type { NodeEvent } from "../events/node-event.ts";
import { NodeEvents } from "../events/node-events.ts";
import { descriptorLimit, descriptorShares } from "../host/descriptors.ts";
import type { Kernel } from "../host/kernel.ts";
import { realKernel } from "../host/real.ts";
import { describeError, type Log } from "../log/log.ts";
import { createLog } from "../log/pino.ts";
import { iptablesBackends, iptablesSemantics, prepareIptables } from "../modes/iptables.ts";
import { ipvsSemantics, ipvsServing, prepareIpvs } from "../modes/ipvs.ts";
import { userspaceBackends, userspaceSemantics } from "../modes/userspace.ts";
import { loadMemory, memoryPath } from "../ownership/memory-file.ts";
import type { AgentParts } from "../run/parts.ts";
import { runAgent } from "../run/run-agent.ts";
import { Progress } from "../sync/progress.ts";
import { tidying } from "../sync/tidying.ts";
import { chooseMode, type ServedMode } from "./choose-mode.ts";
import { cleanUp } from "./cleanup.ts";
import { openFamilies } from "./families.ts";
import { runLocal } from "./local.ts";
import { lockNode } from "./node-lock.ts";
import { adjustOOMScore } from "./oom-score.ts";
import { failOnUnhandled, fullSyncSignal, stopSignal } from "./process.ts";
import { openSource } from "./source.ts";
import { StartError } from "./start-error.ts";
import { version } from "./version.ts";

/** Does what the process was started for; resolves to its exit code. */
export async function carryOut(
  config: AgentConfig,
  warnings: readonly string[],
  { out, err }: { readonly out: (text: string) => void; readonly err: (text: string) => void },
): Promise<number> {
  const log = createLog(config.logging);
  for (const warning of warnings) log.warn(warning);
  try {
    return await act(config, log, out);
  } catch (error) {
    if (error instanceof StartError) err(`${error.message}\n`);
    else log.error("Cannot go on", { error: describeError(error) });
    return 1;
  }
}

async function act(config: AgentConfig, log: Log, out: (text: string) => void): Promise<number> {
  const { action } = config;
  if (action.kind === "write-config") {
    writeConfig(action.path, action.text);
    return 0;
  }
  if (action.kind === "run" && config.userspace.only) return runLocal(config, log, out);
  const kernel = realKernel(log);
  if (action.kind === "cleanup") {
    await lockNode(config, log);
    return cleanUp(kernel, log);
  }
  if (action.kind === "init-only") {
    const { mode } = await chooseMode(config, kernel, log);
    await openFamilies(kernel, config.bindAddress, log);
    await prepareConntrack(config.conntrack, kernel.sysctl, log);
    await prepare[mode](config, kernel, log);
    log.info("System initialized and --init-only specified");
    return 0;
  }
  return run(config, kernel, log);
}

// Userspace mode asks nothing of the kernel but its rules.
const prepare = { iptables: prepareIptables, ipvs: prepareIpvs, userspace: async () => {} } as const;
const semantics = { iptables: iptablesSemantics, ipvs: ipvsSemantics, userspace: userspaceSemantics } as const;

async function backendsOf(
  mode: ServedMode,
  ...[config, ports, kernel, log, progress]: Parameters<typeof iptablesBackends>
): Promise<Pick<AgentParts, "backends" | "relaying" | "strangeChange">> {
  if (mode === "userspace") return userspaceBackends(config, ports, log, progress);
  if (mode === "ipvs") return ipvsServing(config, ports, kernel, log, progress);
  return { backends: await iptablesBackends(config, ports, kernel, log, progress) };
}

async function run(config: AgentConfig, kernel: Kernel, log: Log): Promise<number> {
  failOnUnhandled(log);
  const stop = stopSignal(log);
  const onFullSyncAsked = fullSyncSignal(log);
  const filter = filterSettings(config);
  if (!filter.ok) throw new StartError(filter.errors.join("\n"));
  await lockNode(config, log);
  const nodeName = config.hostnameOverride ?? hostname().trim().toLowerCase();
  const { excludeCIDRs } = filter.options;
  log.info("Fairlead starts", { version: `v${version}`, mode: config.mode, node: nodeName, pid: process.pid });
  if (excludeCIDRs.length > 0) log.info("Leaving services of these pod networks to them", { excludeCIDRs });
  for (const note of filter.notes) log.info(note);
  await adjustOOMScore(config.oomScoreAdj, log);
  const mode = await chooseMode(config, kernel, log);
  // Mostly waiting for processes and files, none of them for another.
  const [{ source, postEvent }, { ports, unserved }, memory] = await Promise.all([
    openSource(config, nodeName),
    openFamilies(kernel, config.bindAddress, log),
    loadMemory(memoryPath(config.stateDir), filter.options, log),
    prepareConntrack(config.conntrack, kernel.sysctl, log),
    prepare[mode.mode](config, kernel, log),
  ]);
  const events = postEvent && new NodeEvents({ node: nodeName, post: postEvent, clock: systemClock, log });
  void events?.tell(startingEvent());
  if (mode.fallback !== undefined) void events?.tell(fallbackEvent(mode.fallback));
  // Opening again would look once more which variant the host uses, over all the rules that there are by then.
  const opened: Kernel = { ...kernel, iptables: async (family) => ports.get(family) ?? kernel.iptables(family) };
  const progress = new Progress();
  const serving = await backendsOf(mode.mode, config, ports, kernel, log, progress);
  // In ipvs mode both families have the service device and the tools in common.
  const familiesAtOnce = mode.mode !== "ipvs" && [...ports.values()].every(({ variant }) => variant === "nft");
  const parts = {
    config,
    filter: filter.options,
    nodeName,
    kernel: opened,
    mode,
    ...serving,
    progress,
    followers: [tidying(systemClock, releaseMemory)],
    familiesAtOnce,
    unserved,
    maxClients: descriptorShares(descriptorLimit()).clients,
    memory,
    source,
    events,
    onFullSyncAsked,
    log,
  };
  const reason = await runAgent({ ...parts, semantics: semantics[mode.mode], clock: systemClock }, stop);
  if (reason === undefined) {
    log.info("Fairlead stops; its rules stay in place");
    return 0;
  }
  log.error("Fairlead cannot go on", { reason });
  return 1;
}

/** kube-proxy's, at each start. */
function startingEvent(): NodeEvent {
  return { type: "Normal", reason: "Starting", action: "StartKubeProxy", message: `Fairlead v${version}` };
}

function fallbackEvent(reason: string): NodeEvent {
  const message = `This node cannot do ipvs mode and is served in iptables mode: ${reason}`;
  return { type: "Warning", reason: "ModeFallback", message };
}

function writeConfig(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw new StartError(`--write-config-to=${path}: cannot be written: ${describeError(error)}`, { cause: error });
  }
}
