import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { errorChainText, errorCode } from "@fairlead/base";
import { Memory, type MemoryScope, parseMemory } from "@fairlead/endpoint-filter";
import type { Log } from "../log/log.ts";
import { readStateFile } from "./state-file.ts";

/**
 * Reads the memory back. Whatever is wrong with the file: an empty memory and one line.
 *
 * @param path undefined: nothing is kept
 */
export async function loadMemory(path: string | undefined, scope: MemoryScope, log: Log): Promise<Memory> {
  if (path === undefined) return Memory.empty;
  try {
    const { memory, reason } = parseMemory(await readStateFile(path), scope);
    if (reason !== undefined)
      log.warn("Cannot use the ownership memory; starting with an empty one", { file: path, reason });
    return memory;
  } catch (error) {
    const missing = errorCode(error) === "ENOENT";
    if (missing) log.info("No ownership memory found; starting with an empty one", { file: path });
    else
      log.warn("Cannot use the ownership memory; starting with an empty one", {
        file: path,
        reason: errorChainText(error),
      });
    return Memory.empty;
  }
}

/** Writes alongside the file and renames, so that a reader sees the old text or the new one, never a part. */
export async function replaceFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const beside = `${path}.${process.pid}.tmp`;
  try {
    // The leftover of a killed agent, or another program's file.
    await rm(beside, { force: true });
    await writeFile(beside, text, { mode: 0o600, flag: "wx" });
    await rename(beside, path);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}
