/** What runs leave on the machine for as long as they last, or are kept. */

import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { cacheFolder } from "@fairlead/lab/control-plane/programs";
import type { Cluster, ClusterShape } from "@fairlead/lab/provider/cluster";
import { removeGroups, takeBack } from "@fairlead/lab/provider/kind/machine";
import { isRunning, type ProcessId, processesWith, processId, signal } from "@fairlead/lab/support/processes";
import {
  ownedFolders,
  type RunInventory,
  type RunMark,
  removeAbandoned,
  takeRunInventory,
} from "@fairlead/lab/support/run-inventory";
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

/** Counts what a run has on this machine before it, while it is at work, and after it. */
export interface LeftoverWatch {
  look(): Promise<void>;
  /** Waits a little for what is about to end, and counts for the last time. */
  finish(): Promise<Leftovers>;
}

interface Leftovers {
  /** Before, during and after, a line for each kind of thing. */
  readonly table: string;
  /** What is there after the run and was not before, or the other way round, in words. */
  readonly changed: readonly string[];
  /**
   * Nothing of the run is left. Of the machine's own another program may have changed something meanwhile: that counts
   * where CI is set, where there is no other program.
   */
  readonly clean: boolean;
}

const LEFTOVERS_END_MS = 10_000;

type Kinds = readonly (readonly [keyof RunInventory, string])[];

const OF_RUN: Kinds = [
  ["namespaces", "network namespaces of the run"],
  ["processes", "processes of the run"],
  ["folders", "temporary folders of the run"],
];
const OF_MACHINE: Kinds = [
  ["links", "network interfaces of the machine"],
  ["rules", "lines of the machine's iptables rules"],
];

/** Before anything that carries the mark is started. @param mark of the run */
export async function watchLeftovers(mark: RunMark, { patienceMs = LEFTOVERS_END_MS } = {}): Promise<LeftoverWatch> {
  const before = await takeRunInventory(mark);
  const namespaces = new Set<string>();
  let during = before;
  const finish = async () => {
    let after = await takeRunInventory(mark, namespaces);
    const settled = waitUntil("an end", patienceMs, async () => {
      after = await takeRunInventory(mark, namespaces);
      return changes(OF_RUN, before, after).length === 0 ? true : undefined;
    });
    await settled.catch(() => {});
    const changed = [...changes(OF_RUN, before, after), ...changes(OF_MACHINE, before, after)];
    const counted = process.env["CI"] ? changed : changes(OF_RUN, before, after);
    return { table: table([before, during, after]), changed, clean: counted.length === 0 };
  };
  return {
    look: async () => {
      const now = await takeRunInventory(mark);
      for (const one of now.namespaces) namespaces.add(one);
      if (now.processes.length > during.processes.length) during = now;
    },
    finish,
  };
}

function changes(kinds: Kinds, before: RunInventory, after: RunInventory): readonly string[] {
  return kinds.flatMap(([kind]) => [
    ...after[kind].filter((one) => !before[kind].includes(one)).map((one) => `${kind}: left behind ${one}`),
    ...before[kind].filter((one) => !after[kind].includes(one)).map((one) => `${kind}: gone ${one}`),
  ]);
}

function table(columns: readonly RunInventory[]): string {
  const kinds = [...OF_RUN, ...OF_MACHINE];
  const width = Math.max(...kinds.map(([, title]) => title.length));
  const row = (title: string, cells: readonly (string | number)[]) =>
    `${title.padEnd(width)} ${cells.map((cell) => String(cell).padStart(7)).join("")}`;
  return [
    row("", ["before", "during", "after"]),
    ...kinds.map(([kind, title]) =>
      row(
        title,
        columns.map((inventory) => inventory[kind].length),
      ),
    ),
  ].join("\n");
}
