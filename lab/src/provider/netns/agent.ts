/** Agents of nodes: their flags, how they are started, and how they are restarted and killed. */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type AgentProcess, type AgentSettings, startAgent } from "../../agent.ts";
import { modeNamed } from "../../modes.ts";
import { START_MS, waitUntil } from "../../support/wait-until.ts";
import type { AgentOnNode, AgentStart, ClusterShape, Instance, NodeProxy } from "../cluster.ts";
import { asksOf } from "../pod-handle.ts";
import type { GroundNode } from "./ground.ts";

interface NodeAgent extends AgentOnNode {
  dispose(): Promise<void>;
}

/**
 * @param flags of Fairlead and of kube-proxy
 * @param folder of its own: for its state, and what else it is given
 */
export async function startNodeAgent(
  { namespace, runner, addresses }: GroundNode,
  first: NodeProxy,
  flags: (proxy: NodeProxy, how: AgentStart) => Promise<readonly string[]>,
  folder: string,
): Promise<NodeAgent> {
  const families = Object.keys(addresses);
  const asks = asksOf(runner, addresses);
  const logs: string[] = [];
  let proxy = first;
  const start = async (how: AgentStart = {}) => {
    const { kubeProxy } = proxy;
    const agent = startAgent(namespace, {
      flags: [...(await flags(proxy, how)), ...(how.flags ?? [])],
      ...(kubeProxy === undefined ? await startSettings(folder, how) : { program: kubeProxy }),
    });
    await (kubeProxy === undefined ? inPlace(agent, families) : kubeProxyInPlace(agent, asks));
    return agent;
  };
  let agent = await start();
  const end = async (how: "stop" | "kill") => {
    const { log } = await agent[how]();
    if (logs.at(-1) !== log) logs.push(log);
  };
  return {
    ...asks,
    pid: () => agent.pid,
    log: async () => (logs.at(-1) === agent.log() ? logs : [...logs, agent.log()]).join("\n"),
    kill: () => end("kill"),
    restart: async (how) => {
      await end("stop");
      agent = await start(how);
    },
    swap: async (next) => {
      await end("stop");
      proxy = next;
      agent = await start();
    },
    signal: async (signal) => void process.kill(agent.pid, signal),
    stepClock: async (offsetMs) => {
      await stepClockTo(folder, offsetMs);
      process.kill(agent.pid, "SIGWINCH");
    },
    dispose: async () => {
      await end("kill");
    },
  };
}

/** An agent with a service proxy name in a node's namespace. */
export async function startNodeInstance(
  { namespace, addresses }: GroundNode,
  flags: readonly string[],
): Promise<NodeInstance> {
  const start = async () => {
    const started = startAgent(namespace, { flags });
    await inPlace(started, Object.keys(addresses));
    return started;
  };
  let agent = await start();
  return {
    restart: async () => {
      await agent.stop();
      agent = await start();
    },
    remove: async () => {
      await agent.stop();
      await cleanUp(namespace, flags);
    },
    kill: async () => void (await agent.kill()),
    dispose: async () => void (await agent.kill()),
  };
}

/** @param memory `AgentStart.memory` */
export function stateFolder(folder: string, memory?: string): string {
  return join(folder, memory === undefined ? "state" : `state-${memory}`);
}

interface ProxySettings {
  readonly nodeName: string;
  readonly kubeconfig: string;
  readonly stateFolder: string;
}

/** What a proxy is run with on a node. */
export function proxyFlags(
  shape: ClusterShape,
  settings: ProxySettings,
  { mode, kubeProxy }: NodeProxy,
  { learns = false }: Pick<AgentStart, "learns"> = {},
): readonly string[] {
  const excluded = learns ? [] : networkCIDRs(shape, { excluded: true });
  const common = [
    `--proxy-mode=${mode}`,
    `--kubeconfig=${settings.kubeconfig}`,
    `--hostname-override=${settings.nodeName}`,
    ...(learns ? [] : [`--cluster-cidr=${networkCIDRs(shape, { excluded: false }).join(",")}`]),
  ];
  // What is the machine's own stays as it is.
  if (kubeProxy !== undefined) return [...common, "--conntrack-max-per-core=0", "--conntrack-min=0"];
  return [
    ...common,
    `--state-dir=${settings.stateFolder}`,
    ...(excluded.length > 0 ? [`--exclude-cluster-cidr=${excluded.join(",")}`] : []),
    // Specs wait for changes; a cluster of two nodes can take them at once.
    "--iptables-min-sync-period=50ms",
    `--iptables-sync-period=${SYNC_PERIOD_MS}ms`,
    ...modeNamed(mode).flags,
    `--ipvs-sync-period=${IPVS_SYNC_PERIOD_MS}ms`,
    "-v=2",
  ];
}

/** The same for an agent that is started so: what is said in a configuration file is in a file alongside its state. */
export async function startFlags(
  shape: ClusterShape,
  settings: ProxySettings,
  proxy: NodeProxy,
  how: AgentStart,
): Promise<readonly string[]> {
  const flags = proxyFlags(shape, settings, proxy, how);
  if (how.multiCNI === undefined) return flags;
  const file = `${settings.stateFolder}.conf`;
  const periods = { minSyncPeriod: "50ms", syncPeriod: `${SYNC_PERIOD_MS}ms` };
  const kubeProxy = {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    clientConnection: { kubeconfig: settings.kubeconfig },
    mode: proxy.mode,
    iptables: periods,
    nftables: periods,
  };
  const { multiCNI } = how;
  const fairlead = { apiVersion: "fairlead.dev/v1alpha1", kind: "FairleadConfiguration", multiCNI };
  await writeFile(file, [kubeProxy, fairlead].map((document) => JSON.stringify(document)).join("\n---\n"));
  return [...flags, `--config=${file}`];
}

/**
 * How long what was flushed may stay away. In ipvs mode everything is read each time, and guests are slow: the default.
 */
export const SYNC_PERIOD_MS = 2_000;
const IPVS_SYNC_PERIOD_MS = 30_000;

/** The pod CIDRs of the networks that Fairlead serves, or of those that it ignores. */
export function networkCIDRs(
  { networks }: ClusterShape,
  wanted: Pick<ClusterShape["networks"][0], "excluded">,
): readonly string[] {
  const those = networks.filter(({ excluded }) => excluded === wanted.excluded);
  return those.flatMap(({ podCIDRs }) => Object.values(podCIDRs));
}

interface NodeInstance extends Instance {
  dispose(): Promise<void>;
}

async function cleanUp(namespace: GroundNode["namespace"], flags: readonly string[]): Promise<void> {
  const { exitCode, log } = await startAgent(namespace, { flags: [...flags, "--cleanup"] }).ended;
  if (exitCode !== 0) throw new Error(`--cleanup ended with ${exitCode}:\n${log}`);
}

/** Resolves when the agent has said of every family that its rules are written. */
function inPlace(agent: AgentProcess, families: readonly string[]): Promise<void> {
  return untilSynced(agent, async () => {
    const lines = agent.log().split("\n");
    const saysSo = (family: string) =>
      lines.some((line) => line.includes('"Rules are in place"') && line.includes(`ipFamily="${family}"`));
    return families.every(saysSo);
  });
}

/** One with a moment for every family: it has synced each of them. */
const SYNCED = /^kubeproxy_sync_proxy_rules_last_timestamp_seconds(?:\{.*\})? (\S+)$/gm;

function kubeProxyInPlace(agent: AgentProcess, { get }: Pick<AgentOnNode, "get">): Promise<void> {
  return untilSynced(agent, async () => {
    const moments = [...(await get("/metrics").catch(() => "")).matchAll(SYNCED)];
    return moments.length > 0 && moments.every(([, seconds]) => Number(seconds) > 0);
  });
}

async function untilSynced(agent: AgentProcess, isSynced: () => Promise<boolean>): Promise<void> {
  const ended = agent.ended.then(({ exitCode, log }) => {
    throw new Error(`the agent ended with ${exitCode}:\n${log}`);
  });
  const synced = waitUntil("the agent's first sync", START_MS, async () => ((await isSynced()) ? true : undefined));
  try {
    await Promise.race([synced, ended]);
  } catch (error) {
    await agent.kill();
    throw new Error(`no rules; the agent's log:\n${agent.log()}`, { cause: error });
  }
}

const PRELOAD = new URL("../../stepped-clock.ts", import.meta.url).href;

/** In a mount namespace of its own, which ends with the agent: the folder is a disk of one page, and that is taken. */
const FULL_DISK =
  'mount -t tmpfs -o size=4k tmpfs "$1" && head -c 4096 /dev/zero > "$1/everything" && shift && exec "$@"';

/** What an agent may be given alongside its flags. @param folder of the agent's own, for its state and its clock */
async function startSettings(
  folder: string,
  { stateDiskFull = false, ownClock = false, openFiles, memory }: AgentStart,
): Promise<Omit<AgentSettings, "flags">> {
  const state = stateFolder(folder, memory);
  await mkdir(state, { recursive: true });
  await stepClockTo(folder, 0);
  return {
    env: ownClock ? { NODE_OPTIONS: `--import=${PRELOAD}`, FAIRLEAD_E2E_CLOCK: clockFile(folder) } : {},
    behind: [
      ...(openFiles === undefined ? [] : ["prlimit", `--nofile=${openFiles}:${openFiles}`]),
      ...(stateDiskFull ? ["unshare", "--mount", "sh", "-c", FULL_DISK, "sh", state] : []),
    ],
  };
}

function clockFile(folder: string): string {
  return join(folder, "clock");
}

/** For an agent that has a clock of its own, which takes it over on SIGWINCH. */
async function stepClockTo(folder: string, offsetMs: number): Promise<void> {
  await writeFile(clockFile(folder), String(offsetMs));
}
