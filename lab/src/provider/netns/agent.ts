import { type AgentProcess, startAgent } from "../../agent/agent-process.ts";
import { waitUntil } from "../../agent/wait-until.ts";
import type { AgentOnNode, AgentStart, Instance, NodeProxy } from "../node.ts";
import { asksOf } from "../node-http.ts";
import type { GroundNode } from "./ground.ts";
import { startSettings, stepClockTo } from "./start-how.ts";

/** It takes a second, but for a slow guest. */
const START_MS = 300_000;

/** The built agent in a node's namespace. */
export interface NodeAgent extends AgentOnNode {
  dispose(): Promise<void>;
}

/**
 * @param flags of Fairlead and of kube-proxy
 * @param folder of its own: for its state, and what else it is given
 */
export async function startNodeAgent(
  { namespace, runner, addresses }: GroundNode,
  first: NodeProxy,
  flags: (proxy: NodeProxy, how: AgentStart) => readonly string[],
  folder: string,
): Promise<NodeAgent> {
  const families = Object.keys(addresses);
  const asks = asksOf(runner, addresses);
  const logs: string[] = [];
  let proxy = first;
  const start = async (how: AgentStart = {}) => {
    const { kubeProxy } = proxy;
    const agent = startAgent(namespace, {
      flags: [...flags(proxy, how), ...(how.flags ?? [])],
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
    remove: async () => {
      await end("stop");
      await cleanUp(namespace, proxy.kubeProxy, flags(proxy, {}));
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
      await cleanUp(namespace, undefined, flags);
    },
    kill: async () => void (await agent.kill()),
    dispose: async () => void (await agent.kill()),
  };
}

export interface NodeInstance extends Instance {
  dispose(): Promise<void>;
}

/** @throws Error with its log when it fails */
async function cleanUp(
  namespace: GroundNode["namespace"],
  kubeProxy: string | undefined,
  flags: readonly string[],
): Promise<void> {
  const cleaning =
    kubeProxy === undefined ? { flags: [...flags, "--cleanup"] } : { flags: ["--cleanup"], program: kubeProxy };
  const { exitCode, log } = await startAgent(namespace, cleaning).ended;
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
