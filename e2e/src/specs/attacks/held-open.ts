import { readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { agentFile } from "@fairlead/lab/agent";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { able } from "../needs.ts";
import type { Spec } from "../spec.ts";
import { startProgram, underAttack } from "./under-attack.ts";

/** What the lock was once: a socket of this name in the abstract namespace. */
const NAME = "fairlead-proxy";
const CONNECTIONS = 2_000;
const HELD_MS = 3_000;

/** Files that the agent's process has open and that are locks by their name. */
async function lockFiles({ agent }: ClusterNode): Promise<readonly string[]> {
  const folder = `/proc/${able(agent.pid)()}/fd`;
  const names = await readdir(folder);
  const files = await Promise.all(names.map((name) => readlink(join(folder, name)).catch(() => "")));
  return files.filter((file) => file.endsWith(".lock"));
}

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

export const heldOpen: readonly Spec[] = [
  squatted,
  held("the lock's socket", "fairlead"),
  held("the health and the metrics port", "10256", "10249"),
];
