/**
 * Preloaded into the agent's Node: `--import file:///…/loop-probe.ts?out=FILE`. At its end the process leaves in FILE how
 * long its event loop was held at most, in milliseconds.
 */
import { writeFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";

const RESOLUTION_MS = 1;

const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();
process.on("exit", () => {
  const file = new URL(import.meta.url).searchParams.get("out");
  if (file !== null) writeFileSync(file, String(delay.max / 1e6));
});
