import { copyFile, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const LAST_LINES = 20;
/** What a process's end breaks is often noticed before the end itself. */
const NOTICED_MS = 1_000;

/**
 * Keeps the log of a proxy that ended by itself, which else would go with the bench's own folder.
 *
 * @returns where it is, and its last lines
 */
export async function keptLog(file: string, name: string): Promise<string> {
  const kept = join(tmpdir(), `fairlead-bench-${name}.log`);
  await copyFile(file, kept);
  const lines = (await readFile(kept, "utf8")).trimEnd().split("\n").slice(-LAST_LINES);
  return `its log is in ${kept} and ends with:\n${lines.join("\n")}`;
}

/**
 * Waits for work with a process.
 *
 * @param ended rejects when the process has ended by itself: this is what is thrown then, also where the work failed
 * first
 */
export async function whileItRuns<T>(ended: Promise<never>, work: Promise<T>): Promise<T> {
  try {
    return await Promise.race([work, ended]);
  } catch (error) {
    await Promise.race([ended, sleep(NOTICED_MS, undefined, { ref: false })]);
    throw error;
  }
}
