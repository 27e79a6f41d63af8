/** What runs leave on the machine for as long as they last, or are kept. */

import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { cacheFolder } from "@fairlead/lab/control-plane/programs";
import type { Cluster, ClusterShape } from "@fairlead/lab/provider/cluster";
import { removeGroups, takeBack } from "@fairlead/lab/provider/kind/machine";
import { isRunning, type ProcessId, processesWith, processId, signal } from "@fairlead/lab/support/processes";
import { described, ownedFolders, removeAbandoned } from "@fairlead/lab/support/run-inventory";
import { RUN_VARIABLE } from "@fairlead/lab/support/script";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { UsageError } from "./options.ts";

/** What a run keeps on disk while it lasts. Its name is the run's id. */
export interface RunFolder {
  readonly id: string;
  readonly path: string;
  /** From now on the run only waits to be looked at: `down` may end it. */
  markKept(): Promise<void>;
  remove(): Promise<void>;
}

const PREFIX = "fairlead-e2e-run-";

/** The name of a run, of which there is no other. */
export function newRunId(): string {
  return `${PREFIX}${randomUUID().slice(0, 8)}`;
}

const RECORD = "run.json";

export async function openRunFolder(id: string, parent: string = tmpdir()): Promise<RunFolder> {
  const path = join(parent, id);
  await mkdir(path, { mode: 0o700 });
  const owner = await processId(process.pid);
  const write = (kept: boolean) => writeFile(join(path, RECORD), JSON.stringify({ owner, kept }));
  await write(false);
  return {
    id,
    path,
    markKept: () => write(true),
    remove: () => rm(path, { recursive: true, force: true }),
  };
}

export function checkKeep({ mode, ownKernel }: ClusterShape): void {
  if (ownKernel !== true) return;
  throw new UsageError(
    `--keep with --mode ${mode}: the cluster is in User-Mode Linux, which cannot be entered; leave --keep out (a failed spec keeps rules, states and logs of every node)`,
  );
}

/** Says how to look around, and waits until the signal aborts. */
export async function keepRunning({ tour }: Cluster, folder: RunFolder, signal: AbortSignal): Promise<void> {
  await folder.markKept();
  const lines = [
    "",
    "Still running; look around, Ctrl-C or `pnpm e2e down` ends it:",
    ...tour.map((line) => `  ${line}`),
  ];
  console.log(lines.join("\n"));
  // Without a timer a process that only waits for a signal would end.
  const alive = setInterval(() => {}, 60_000);
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  clearInterval(alive);
}

/**
 * Takes down what earlier runs have left, and runs that wait with --keep; and folders that killed tests, demos,
 * benchmarks and builds have left. Runs at work are skipped, and so is everything that carries neither a run's id nor
 * the number of a process that is gone.
 *
 * @param temporary where runs and tests have their folders
 * @param cache where programs are built
 * @param ofMachine takes back what is on the machine itself of runs whose folders are gone, and says so
 * @returns what was done, a line each
 */
export async function takeDown(
  temporary = tmpdir(),
  cache = cacheFolder(""),
  ofMachine = () => takeBack(PREFIX),
): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const parent of [temporary, ...(await ownedFolders(temporary))]) {
    for (const record of await runRecords(parent)) lines.push(await end(record));
  }
  const builds = (await readdir(cache).catch(() => [])).map((name) => join(cache, name));
  for (const parent of [temporary, ...builds]) {
    lines.push(...(await removeAbandoned(parent)).map((path) => `${basename(path)}: removed`));
  }
  lines.push(...(await ofMachine()));
  return lines.length === 0 ? ["nothing is left of earlier runs"] : lines;
}

interface RunRecord {
  readonly path: string;
  readonly id: string;
  readonly owner: ProcessId;
  readonly kept: boolean;
}

/** The runs that have folders here. A folder that says nothing of its run is ignored. */
async function runRecords(parent: string = tmpdir()): Promise<readonly RunRecord[]> {
  const names = (await readdir(parent).catch(() => [])).filter((name) => name.startsWith(PREFIX));
  const records = await Promise.all(names.map((name) => readRecord(join(parent, name))));
  return records.filter((record) => record !== undefined);
}

async function readRecord(path: string): Promise<RunRecord | undefined> {
  try {
    const { owner, kept } = JSON.parse(await readFile(join(path, RECORD), "utf8"));
    const { pid, startTime } = owner;
    if (typeof pid !== "number" || typeof startTime !== "string") return undefined;
    return { path, id: basename(path), owner: { pid, startTime }, kept: kept === true };
  } catch {
    return undefined;
  }
}

const END_MS = 20_000;

async function end(record: RunRecord): Promise<string> {
  const { id, owner, kept, path } = record;
  if (await isRunning(owner)) {
    if (!kept) return `${id}: at work (process ${owner.pid}), skipped`;
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

const LEFTOVERS_END_MS = 10_000;

/** What is left of a run: its processes and temporary folders, in words. Waits a little for what is about to end. */
export async function leftovers(id: string, patienceMs = LEFTOVERS_END_MS): Promise<readonly string[]> {
  let left: readonly string[] = [];
  const look = async () => {
    const processes = await processesWith(RUN_VARIABLE, id);
    const folders = (await readdir(tmpdir())).filter((name) => name.startsWith(id));
    left = [...(await Promise.all(processes.map(({ pid }) => described(pid)))), ...folders];
    return left.length === 0 ? true : undefined;
  };
  await waitUntil("an end", patienceMs, look).catch(() => {});
  return left.map((one) => `left behind: ${one}`);
}
