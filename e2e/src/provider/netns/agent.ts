import type { Runner } from "@fairlead/kernel";
import { type AgentProcess, startAgent } from "../../agent/agent-process.ts";
import { waitUntil } from "../../agent/wait-until.ts";
import type { AgentOnNode } from "../cluster.ts";
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
    get: (path) => httpGet(runner, path),
    status: (family, port) => httpStatus(runner, addresses[family] ?? "", port),
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

/**
 * An agent may fall back to another mode, where specs would be green for the wrong reason.
 *
 * @throws Error that names both modes
 */
export async function requireMode({ get }: AgentOnNode, mode: string): Promise<void> {
  const answer = (await get("/proxyMode")).trim();
  if (answer !== mode) throw new Error(`Fairlead runs in ${answer} mode where ${mode} was asked for`);
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

/** HTTP/1.0 by the shell: bare nodes have no client. */
const GET = 'exec 3<>"/dev/tcp/$1/$2" && printf "GET %s HTTP/1.0\\r\\nHost: node\\r\\n\\r\\n" "$3" >&3 && cat <&3';

/** `/healthz` and `/livez` are asked of the health port, everything else of the metrics port. */
async function httpGet(runner: Runner, path: string): Promise<string> {
  const port = path === "/healthz" || path === "/livez" ? "10256" : "10249";
  const answer = await ask(runner, "127.0.0.1", port, path);
  const end = answer.indexOf("\r\n\r\n");
  return end === -1 ? answer : answer.slice(end + 4);
}

async function httpStatus(runner: Runner, address: string, port: number): Promise<number> {
  const answer = await ask(runner, address, String(port), "/").catch(() => "");
  return Number(/^HTTP\/\S+ (\d+)/.exec(answer)?.[1] ?? "0");
}

async function ask(runner: Runner, address: string, port: string, path: string): Promise<string> {
  const { stdout } = await runner.run(["bash", "-c", GET, "bash", address, port, path], { timeoutMs: 30_000 });
  return stdout;
}
