import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { type ProcessId, processId } from "@fairlead/lab/support/processes";

/** What a run keeps on disk while it lasts. Its name is the run's id. */
export interface RunFolder {
  readonly id: string;
  readonly path: string;
  /** From now on the run only waits to be looked at: `down` may end it. */
  markKept(): Promise<void>;
  remove(): Promise<void>;
}

/** What the folder says of its run. */
export interface RunRecord {
  readonly path: string;
  readonly id: string;
  readonly owner: ProcessId;
  readonly kept: boolean;
}

const PREFIX = "fairlead-e2e-run-";
const RECORD = "run.json";

/** The name of a run, of which there is no other. */
export function newRunId(): string {
  return `${PREFIX}${randomUUID().slice(0, 8)}`;
}

/** @throws Error when there is a folder of that name */
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

/** The runs that have folders here. A folder that says nothing of its run is nobody's business. */
export async function runRecords(parent: string = tmpdir()): Promise<readonly RunRecord[]> {
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
