import { readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { cacheFolder } from "@fairlead/lab/control-plane/programs";
import { removeGroups } from "@fairlead/lab/provider/kind/machine";
import { isRunning, processesWith, signal } from "@fairlead/lab/support/processes";
import { ownedFolders, removeAbandoned } from "@fairlead/lab/support/run-inventory";
import { RUN_VARIABLE } from "@fairlead/lab/support/script";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { type RunRecord, runRecords } from "./run-folder.ts";

const END_MS = 20_000;

/**
 * Takes down what earlier runs have left, and runs that wait with --keep; and folders that killed tests, demos,
 * benchmarks and builds have left. Runs at work are left alone, and so is everything that carries neither a run's id
 * nor the number of a process that is gone.
 *
 * @param temporary where runs and tests have their folders
 * @param cache where programs are built
 * @returns what was done, a line each
 */
export async function takeDown(temporary = tmpdir(), cache = cacheFolder("")): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const parent of [temporary, ...(await ownedFolders(temporary))]) {
    for (const record of await runRecords(parent)) lines.push(await end(record));
  }
  const builds = (await readdir(cache).catch(() => [])).map((name) => join(cache, name));
  for (const parent of [temporary, ...builds]) {
    lines.push(...(await removeAbandoned(parent)).map((path) => `${basename(path)}: removed`));
  }
  return lines.length === 0 ? ["nothing is left of earlier runs"] : lines;
}

async function end(record: RunRecord): Promise<string> {
  const { id, owner, kept, path } = record;
  if (await isRunning(owner)) {
    if (!kept) return `${id}: at work (process ${owner.pid}), left alone`;
    await signal(owner, "SIGTERM");
    await waitUntil(`the end of process ${owner.pid}`, END_MS, async () =>
      (await isRunning(owner)) ? undefined : true,
    );
  }
  const left = await processesWith(RUN_VARIABLE, id);
  await Promise.all(left.map((one) => signal(one, "SIGKILL")));
  await removeGroups(id);
  await rm(path, { recursive: true, force: true });
  return `${id}: removed${left.length > 0 ? `, with ${left.length} processes` : ""}`;
}
