import { fileURLToPath } from "node:url";
import type { Runner } from "@fairlead/kernel";

const source = fileURLToPath(new URL("../../../../kind/pause.c", import.meta.url));

/** The first process of pods, by the C compiler: a Go program takes twenty times the memory. */
export async function buildPause(runner: Runner, file: string): Promise<void> {
  await runner.run(["gcc", "-Os", "-static", "-s", "-o", file, source]);
}
