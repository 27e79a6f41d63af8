import { setTimeout as sleep } from "node:timers/promises";
import { ask } from "./ask.ts";
import type { Line } from "./probe.ts";

/** Milliseconds between two requests, for which only the last servers answer at the end, and of all. */
const PAUSE_MS = 25;
const QUIET_MS = 3_000;
const MOST_MS = 90_000;

/** Asks again and again, until only these servers have answered for a while. */
export async function load(
  address: string,
  port: number,
  until: readonly string[],
  print: (line: Line) => void,
): Promise<void> {
  await firstAnswer(address, port);
  const failures: Record<string, number> = {};
  let requests = 0;
  const began = performance.now();
  let last = began;
  print({ kind: "loading" });
  while (performance.now() - last < QUIET_MS && performance.now() - began < MOST_MS) {
    const answer = await ask({ protocol: "TCP", address, port });
    requests += 1;
    if ("error" in answer) failures[answer.error] = (failures[answer.error] ?? 0) + 1;
    if (!("by" in answer && until.includes(answer.by))) last = performance.now();
    await sleep(PAUSE_MS);
  }
  print({ kind: "loaded", requests, failures });
}

/** What is programmed for the first servers takes effect some time after they are ready. */
async function firstAnswer(address: string, port: number): Promise<void> {
  const end = performance.now() + MOST_MS;
  while ("error" in (await ask({ protocol: "TCP", address, port })) && performance.now() < end) await sleep(PAUSE_MS);
}
