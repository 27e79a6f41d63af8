import { setTimeout as sleep } from "node:timers/promises";
import { agentFile } from "../../agent/agent-file.ts";
import type { Spec } from "../spec.ts";
import { startProgram, underAttack } from "./under-attack.ts";

const NAME = "fairlead-proxy";
const CONNECTIONS = 2_000;
const HELD_MS = 3_000;

const squatted: Spec = underAttack({
  name: "attack: nobody's process holds the abstract socket of the lock's name",
  start: async (attacked) => {
    const { node } = attacked;
    await node.agent.kill();
    await startProgram(attacked, "squat", NAME);
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
