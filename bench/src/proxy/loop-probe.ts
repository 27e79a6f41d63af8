/**
 * Preloaded into the agent's Node, by a URL that ends in `?out=FILE`. At its end the process leaves in FILE how long
 * its event loop was held at most, as JSON (`LoopFigures`).
 */
import { subscribe } from "node:diagnostics_channel";
import { writeFileSync } from "node:fs";
import type { Server } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";

/** Milliseconds of the longest time without a turn of the event loop. */
export interface LoopFigures {
  /** By the clock: on a busy machine also what others took. */
  readonly wall: number;
  /** Processor time of the loop's own thread, from the moment on that the program listens. */
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

// Nothing waits for a program that does not listen yet. A socket in the file system has a path for its address: it is a
// lock.
subscribe("tracing:net.server.listen:asyncEnd", (message) => {
  const { server } = message as { readonly server: Server };
  if (typeof server.address() === "object") longest = 0;
});

process.on("exit", () => {
  const file = new URL(import.meta.url).searchParams.get("out");
  const figures: LoopFigures = { wall: delay.max / 1e6, cpu: longest };
  if (file !== null) writeFileSync(file, JSON.stringify(figures));
});
