import { NETWORKS, type RawObject } from "@fairlead/testkit";
import { type AgentProcess, type AgentSettings, startAgent } from "../agent/agent-process.ts";
import { type AgentFolder, agentFolder } from "../agent/manifests.ts";
import { waitUntil } from "../agent/wait-until.ts";
import type { Lab } from "../two-nodes/lab.ts";

/** What the fault tests run the agent with, alongside the paths; times are short so that the tests are. */
const SYNC_PERIOD_MS = 1_000;
export const SCENE_FLAGS: readonly string[] = [
  "--proxy-mode=iptables",
  `--cluster-cidr=${NETWORKS.calico.IPv4},${NETWORKS.calico.IPv6}`,
  `--exclude-cluster-cidr=${NETWORKS.ovn.IPv4},${NETWORKS.ovn.IPv6}`,
  "--hostname-override=node-a",
  "-v=2",
  `--iptables-sync-period=${SYNC_PERIOD_MS}ms`,
  "--iptables-min-sync-period=0s",
];

/** On a busy machine, and a hardened one starts twice. */
const START_MS = 300_000;

/** An agent on node-a of a lab, with its folder. */
export interface Scene {
  readonly folder: AgentFolder;
  /** The agent that runs now, or ran last. */
  agent(): AgentProcess;
  /** Starts another one in the same folder. */
  start(settings?: Partial<AgentSettings>): AgentProcess;
  /** Starts one and waits until its rules are there. */
  restart(settings?: Partial<AgentSettings>): Promise<AgentProcess>;
  /** Ends the agents, removes what they programmed, and the folder. */
  close(): Promise<void>;
}

/** Starts an agent and waits until its rules are in place in both families. */
export async function openScene(
  lab: Lab,
  objects: readonly RawObject[],
  settings: Partial<AgentSettings> = {},
): Promise<Scene> {
  const folder = await agentFolder(objects);
  const started: AgentProcess[] = [];
  const start = ({ flags = [], env = {} }: Partial<AgentSettings> = {}) => {
    const paths = [`--manifests=${folder.manifests}`, `--state-dir=${folder.state}`];
    const agent = startAgent(lab.namespace("node-a"), { flags: [...SCENE_FLAGS, ...paths, ...flags], env });
    started.push(agent);
    return agent;
  };
  const scene: Scene = {
    folder,
    agent: () => started.at(-1) ?? start(settings),
    start,
    restart: async (more = settings) => {
      const agent = start(more);
      await rulesInPlace(agent);
      return agent;
    },
    close: async () => {
      await Promise.all(started.map((agent) => agent.kill()));
      await start({ flags: ["--cleanup"] }).ended;
      await folder.remove();
    },
  };
  try {
    await scene.restart();
    return scene;
  } catch (error) {
    await scene.close();
    throw error;
  }
}

/** @throws Error with the log of an agent that writes no rules */
export async function rulesInPlace(agent: AgentProcess): Promise<void> {
  let ended = false;
  void agent.ended.then(() => {
    ended = true;
  });
  try {
    await waitUntil("the agent's first sync", START_MS, async () => {
      if (ended) throw new Error("the agent ended");
      return ["IPv4", "IPv6"].every((family) => syncs(agent, family) > 0) ? true : undefined;
    });
  } catch (error) {
    throw new Error(`no rules; the agent's log:\n${agent.log()}`, { cause: error });
  }
}

/** How many syncs of a family the agent has told of. */
function syncs(agent: AgentProcess, family: string): number {
  const lines = agent.log().split("\n");
  return lines.filter((line) => line.includes('"Rules are in place"') && line.includes(`ipFamily="${family}"`)).length;
}
