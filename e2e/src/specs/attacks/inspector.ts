import { setTimeout as sleep } from "node:timers/promises";
import { able } from "../needs.ts";
import type { Spec } from "../spec.ts";
import { underAttack } from "./under-attack.ts";

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
