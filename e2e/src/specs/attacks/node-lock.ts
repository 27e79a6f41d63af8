import { setTimeout as sleep } from "node:timers/promises";
import { agentFile } from "../../agent/agent-file.ts";
import type { Spec } from "../spec.ts";
import { startProgram, underAttack } from "./under-attack.ts";

const NAME = "fairlead-proxy";
const CONNECTIONS = 2_000;
const SQUATTED_MS = 3_000;

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

const halfOpen: Spec = underAttack({
  name: "attack: 2,000 half-open connections to the lock's socket, where 1,024 files may be open",
  start: () => ({ openFiles: 1_024 }),
  act: async (attacked) => {
    const script = await startProgram(attacked, "half-open", "fairlead", String(CONNECTIONS));
    await sleep(SQUATTED_MS);
    const meanwhile = await attacked.change("meanwhile");
    const open = await script.ask("open");
    await script.stop();
    return { open, meanwhile };
  },
});

export const nodeLock: readonly Spec[] = [squatted, halfOpen];
