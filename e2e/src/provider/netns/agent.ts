import { type AgentProcess, startAgent } from "../../agent/agent-process.ts";
import { waitUntil } from "../../agent/wait-until.ts";
import type { AgentOnNode } from "../cluster.ts";
import { asksOf } from "../node-http.ts";
import type { GroundNode } from "./ground.ts";

/** It takes a second, but for a slow guest. */
const START_MS = 120_000;

/** The built agent in a node's namespace. */
export interface NodeAgent extends AgentOnNode {
  dispose(): Promise<void>;
}

export async function startNodeAgent(
  { namespace, runner, addresses }: GroundNode,
  flags: readonly string[],
): Promise<NodeAgent> {
  const families = Object.keys(addresses);
  const logs: string[] = [];
  const start = async () => {
    const agent = startAgent(namespace, { flags });
    await inPlace(agent, families);
    return agent;
  };
  let agent = await start();
  const end = async (how: "stop" | "kill") => {
    const { log } = await agent[how]();
    if (logs.at(-1) !== log) logs.push(log);
  };
  return {
    ...asksOf(runner, addresses),
    log: async () => (logs.at(-1) === agent.log() ? logs : [...logs, agent.log()]).join("\n"),
    kill: () => end("kill"),
    restart: async () => {
      await end("stop");
      agent = await start();
    },
    signal: async (signal) => void process.kill(agent.pid, signal),
    dispose: async () => {
      await end("kill");
    },
  };
}

/** Resolves when the agent has said of every family that its rules are written. */
async function inPlace(agent: AgentProcess, families: readonly string[]): Promise<void> {
  const ended = agent.ended.then(({ exitCode, log }) => {
    throw new Error(`the agent ended with ${exitCode}:\n${log}`);
  });
  const synced = waitUntil("the agent's first sync", START_MS, async () => {
    const lines = agent.log().split("\n");
    const saysSo = (family: string) =>
      lines.some((line) => line.includes('"Rules are in place"') && line.includes(`ipFamily="${family}"`));
    return families.every(saysSo) ? true : undefined;
  });
  try {
    await Promise.race([synced, ended]);
  } catch (error) {
    await agent.kill();
    throw new Error(`no rules; the agent's log:\n${agent.log()}`, { cause: error });
  }
}
