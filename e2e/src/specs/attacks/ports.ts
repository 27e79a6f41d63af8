/** Clients and users of the node that reach the agent's ports, its lock or its process. */

import { readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { agentFile } from "@fairlead/lab/agent";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { able, type Spec } from "../spec.ts";
import { startProgram, underAttack } from "./under-attack.ts";

const CONNECTIONS = 2_000;

/** What the lock was once: a socket of this name in the abstract namespace. */
const NAME = "fairlead-proxy";

const squatted: Spec = underAttack({
  name: "attack: a user without rights is there first, where the node's lock is",
  start: async (attacked) => {
    const { node } = attacked;
    const files = await lockFiles(node);
    await node.agent.kill();
    const script = await startProgram(attacked, "squat", NAME, ...files);
    const opened = await script.ask("opened");
    if (opened !== "") throw new Error(`wanted no lock that everybody can hold; nobody's process opened ${opened}`);
    await node.run([process.execPath, "--no-warnings", agentFile(), "--cleanup"]);
    return {};
  },
  act: async (attacked) => ({ meanwhile: await attacked.change("meanwhile") }),
});

export const heldOpen: readonly Spec[] = [
  squatted,
  held("the lock's socket", "fairlead"),
  held("the health and the metrics port", "10256", "10249"),
];

export const pipelines: readonly Spec[] = [
  pipelined(10_249, "/metrics", 2_000, 1),
  pipelined(10_249, "/metrics", 10_000, 3),
  pipelined(10_256, "/healthz", 2_000, 50),
];

const OPEN_MS = 2_000;

export const inspector: Spec = underAttack({
  name: "attack: SIGUSR1, by which Node would open its inspector",
  act: async ({ node, change }) => {
    process.kill(able(node.agent.pid)(), "SIGUSR1");
    await sleep(OPEN_MS);
    const { stdout } = await node.run(["ss", "-Hltnp", "sport", "=", ":9229"]);
    if (stdout !== "") throw new Error(`wanted no inspector; there listens ${stdout}`);
    return { meanwhile: await change("meanwhile") };
  },
});

const HELD_MS = 3_000;

/** Files that the agent's process has open and that are locks by their name. */
async function lockFiles({ agent }: ClusterNode): Promise<readonly string[]> {
  const folder = `/proc/${able(agent.pid)()}/fd`;
  const names = await readdir(folder);
  const files = await Promise.all(names.map((name) => readlink(join(folder, name)).catch(() => "")));
  return files.filter((file) => file.endsWith(".lock"));
}

/** @param to ports, or a part of the names of unix sockets */
function held(where: string, ...to: readonly string[]): Spec {
  return underAttack({
    name: `attack: ${CONNECTIONS.toLocaleString("en")} connections held at ${where}, where 1,024 files may be open`,
    start: () => ({ openFiles: 1_024 }),
    act: async (attacked) => {
      const script = await startProgram(attacked, "half-open", String(CONNECTIONS), ...to);
      await sleep(HELD_MS);
      const meanwhile = await attacked.change("meanwhile");
      const open = await script.ask("open");
      await script.stop();
      return { open, meanwhile };
    },
  });
}

const LAST_MS = 10_000;

/** @param requests on each connection, without waiting for an answer */
function pipelined(port: number, path: string, requests: number, connections: number): Spec {
  return underAttack({
    name: `attack: ${connections} × ${requests.toLocaleString("en")} pipelined GET ${path}`,
    act: async (attacked) => {
      const script = await startProgram(
        attacked,
        "pipeline",
        String(port),
        path,
        String(requests),
        String(connections),
      );
      const meanwhile = await attacked.change("meanwhile");
      await sleep(LAST_MS);
      const sent = await script.ask("sent");
      await script.stop();
      return { sent, meanwhile };
    },
  });
}
