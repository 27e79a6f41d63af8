import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Certificate } from "../../control-plane/control-plane.ts";
import { openGate } from "./gate.ts";
import type { Ground } from "./ground.ts";

const GATE = fileURLToPath(new URL("../../control-plane/gone-main.ts", import.meta.url));

/**
 * Leads what nodes send to the API server to a gate that ends every watch with 410 Gone, for so long.
 *
 * @returns how many watches it has ended
 */
export async function expireWatches(ground: Ground, certificate: Certificate, ms: number): Promise<number> {
  const gate = await openGate(ground, certificate, { file: GATE });
  try {
    await sleep(ms);
    return Number(await gate.ask("count"));
  } finally {
    await gate.stop();
  }
}
