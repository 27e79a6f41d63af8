/** The JavaScript engine: its heap, and snapshots of that. */

import { constants } from "node:fs";
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { getHeapSnapshot, getHeapStatistics, setFlagsFromString } from "node:v8";
import { errorChainText, errorCode } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { Log } from "../log.ts";

/** V8 is the process's. */
let looking: NodeJS.Timeout | undefined;

/** With more than this on it a heap is one of thousands of services, and its start is long enough to be optimized. */
const LARGE_BYTES = 40_000_000;

const LOOK_EVERY_MS = 20;

/** A start is over by then, and what follows the first sync. */
const RESTS_MS = 30_000;

/**
 * Sets V8 up for a proxy, which idles after a burst of reading, alongside tools that need the other core. The young
 * generation keeps its first size, and is collected by the thread that filled it. Nothing is optimized in the start of
 * a small cluster, which is over before it pays: that saves 15 MB and the time of V8's own threads.
 */
export function setUpEngine(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
  setFlagsFromString("--no-parallel-scavenge");
  optimize(false);
  looking = setInterval(() => {
    if (getHeapStatistics().used_heap_size < LARGE_BYTES) return;
    optimize(true);
    clearInterval(looking);
  }, LOOK_EVERY_MS).unref();
  setTimeout(() => {
    clearInterval(looking);
    optimize(true);
  }, RESTS_MS).unref();
}

/**
 * Called after the first sync. From now on V8 rather collects than grows, as a heap that grew once stays resident for
 * good; what the start has left is collected in some seconds. In a start itself that would be a tenth of its processor
 * time: it would mark again and again what stays. 50 looks a second would cost as much.
 */
export function keepHeapSmall(): void {
  clearInterval(looking);
  setFlagsFromString("--optimize-for-size");
}

/**
 * With enableProfiling, SIGQUIT writes a heap snapshot into the state folder. A snapshot holds all of the memory,
 * credentials included, so it never leaves over HTTP: only root and the own user can send the signal and read the file.
 * Without enableProfiling the signal keeps its meaning and ends the process.
 */
export function heapSnapshotSignal(config: Pick<AgentConfig, "enableProfiling" | "stateDir">, log: Log): void {
  if (!config.enableProfiling) return;
  process.on("SIGQUIT", () => void snapshotOnSignal(config.stateDir, log));
}

/** One at most: a snapshot is as large as the heap. */
const FILE = "fairlead-proxy.heapsnapshot";

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;

/**
 * Writes a .heapsnapshot that only the own user can read. The process stands still while it is taken, and needs as much
 * memory again until it is written.
 *
 * @param folder made where it is missing
 * @throws Error with the code of open(2): EEXIST where anything has the file's name, a link too
 */
export async function writeHeapSnapshot(folder: string, take: () => Readable = getHeapSnapshot): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, FILE);
  const file = await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    await pipeline(take(), file.createWriteStream());
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

function optimize(on: boolean): void {
  for (const compiler of ["maglev", "opt"]) setFlagsFromString(on ? `--${compiler}` : `--no-${compiler}`);
}

async function snapshotOnSignal(stateDir: string, log: Log): Promise<void> {
  if (stateDir === "") {
    log.error("Heap snapshot not written: no state folder; set --state-dir", { signal: "SIGQUIT" });
    return;
  }
  const file = join(stateDir, FILE);
  try {
    await writeHeapSnapshot(stateDir);
    log.info("Heap snapshot written; it contains credentials, delete it after use", { file });
  } catch (error) {
    const exists = errorCode(error) === "EEXIST";
    if (exists) log.error("Heap snapshot not written: the file exists; delete it and send SIGQUIT again", { file });
    else log.error("Failed to write a heap snapshot; serving continues", { file, error: errorChainText(error) });
  }
}
