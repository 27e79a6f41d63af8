/**
 * Preloaded into the agent's Node: `--import file:///…/loop-probe.ts?out=FILE`. At its end the process leaves in FILE how
 * long its event loop was held at most, as JSON (`LoopFigures`).
 */
import { subscribe } from "node:diagnostics_channel";
import { writeFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";

/** Milliseconds of the longest time without a turn of the event loop. */
export interface LoopFigures {
  /** By the clock: on a busy machine also what others took. */
  readonly wall: number;
  /** Processor time of the loop's own thread, from the moment on that the program first listened. */
  readonly cpu: number;
}

const RESOLUTION_MS = 1;

const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();

let longest = 0;
let last = process.threadCpuUsage();
setInterval(() => {
  const { user, system } = process.threadCpuUsage(last);
  last = process.threadCpuUsage();
  longest = Math.max(longest, (user + system) / 1000);
}, RESOLUTION_MS).unref();

let listening = false;
// Nobody waits for a program that has not been loaded yet.
subscribe("tracing:net.server.listen:asyncEnd", () => {
  if (!listening) longest = 0;
  listening = true;
});

process.on("exit", () => {
  const file = new URL(import.meta.url).searchParams.get("out");
  const figures: LoopFigures = { wall: delay.max / 1e6, cpu: longest };
  if (file !== null) writeFileSync(file, JSON.stringify(figures));
});
