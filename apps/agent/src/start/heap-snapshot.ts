import { constants } from "node:fs";
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { getHeapSnapshot } from "node:v8";
import { errorChainText, errorCode } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { Log } from "../log/log.ts";

/** One at most: a snapshot is as large as the heap. */
const FILE = "fairlead-proxy.heapsnapshot";

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;

/**
 * With enableProfiling, SIGQUIT writes a heap snapshot into the state folder. A snapshot holds all of the memory,
 * credentials included, so it never leaves over HTTP: only root and the own user can send the signal and read the file.
 * Without enableProfiling the signal keeps its meaning and ends the process.
 */
export function heapSnapshotSignal(config: Pick<AgentConfig, "enableProfiling" | "stateDir">, log: Log): void {
  if (!config.enableProfiling) return;
  process.on("SIGQUIT", () => void snapshotOnSignal(config.stateDir, log));
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
