import { setTimeout as sleep } from "node:timers/promises";
import type { Spec } from "../spec.ts";
import { startProgram, underAttack } from "./under-attack.ts";

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

export const pipelines: readonly Spec[] = [
  pipelined(10_249, "/metrics", 2_000, 1),
  pipelined(10_249, "/metrics", 10_000, 3),
  pipelined(10_256, "/healthz", 2_000, 50),
];
