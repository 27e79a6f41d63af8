import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { ApiServerControl } from "../api-server-control.ts";
import { type GatePlace, openGate } from "./gate.ts";

const scriptNamed = (name: string) => fileURLToPath(new URL(`../../control-plane/${name}`, import.meta.url));
const GONE = scriptNamed("gone-main.ts");
const HOSTILE = scriptNamed("hostile-main.ts");
const BUSY = scriptNamed("busy-main.ts");

/** What can be put before an API server. */
export function gatesBefore(
  place: GatePlace,
): Required<Pick<ApiServerControl, "expireWatches" | "turnHostile" | "turnBusy">> {
  return {
    expireWatches: (ms) => expireWatches(place, ms),
    turnHostile: (way, node) => openGate(place, { file: HOSTILE, more: [way], nodes: [node] }),
    turnBusy: (path) => openGate(place, { file: BUSY, more: [path] }),
  };
}

/**
 * Leads what nodes send to the API server to a gate that ends every watch with 410 Gone, for so long.
 *
 * @returns how many watches it has ended
 */
async function expireWatches(place: GatePlace, ms: number): Promise<number> {
  const gate = await openGate(place, { file: GONE });
  try {
    await sleep(ms);
    return Number(await gate.ask("count"));
  } finally {
    await gate.stop();
  }
}
