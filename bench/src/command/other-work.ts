import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { measureConnections } from "../connections/connections.ts";
import { watchOtherWork } from "../measure/company.ts";
import { measureGrowth } from "../measure/growth.ts";
import { jsonText } from "../measure/json.ts";
import { describeMachine } from "../measure/machine.ts";
import type { BenchOptions, OtherWork } from "../measure/options.ts";
import type { Progress } from "../measure/prepare.ts";
import { takeProfile } from "../measure/profile.ts";
import { measureStorm, type StormFigures } from "../measure/storm.ts";
import { microCases } from "../micro/cases.ts";
import { comparison, measureCases, record, recordedFigures } from "../micro/micro.ts";
import { subjectsOf } from "../proxy/subjects.ts";
import { overviewDocument } from "../report/overview.ts";
import { plots } from "../report/plots.ts";
import { DOCS, loadRecorded, MICRO_FILE, TABLES_FILE } from "../report/recorded.ts";
import { tablesDocument } from "../report/tables.ts";

/** @returns whether something else than the benchmark was asked for */
export async function otherWork(options: BenchOptions & OtherWork, progress: Progress): Promise<boolean> {
  if (options.micro === true) await micro(options.record === true);
  else if (options.growth !== undefined) await growth(options, options.growth, progress);
  else if (options.storm !== undefined) await storm(options, options.storm, progress);
  else if (options.connections !== undefined) await connections(options, options.connections, progress);
  else if (options.profile !== undefined) await profile(options, options.profile, progress);
  else if (options.document === true) await writeDocument();
  else return false;
  return true;
}

async function micro(keep: boolean): Promise<void> {
  const figures = await measureCases(await microCases());
  process.stdout.write(comparison(figures, await recordedFigures(MICRO_FILE)));
  if (keep) await record(MICRO_FILE, figures);
}

async function growth(options: BenchOptions, sizes: readonly number[], progress: Progress): Promise<void> {
  const otherWork = await watchOtherWork();
  const points = await measureGrowth(options, sizes, progress);
  const text = jsonText({ machine: await describeMachine(await otherWork()), points });
  if (options.save !== undefined) await writeFile(options.save, text);
  process.stdout.write(text);
}

async function storm(options: BenchOptions, changes: number, progress: Progress): Promise<void> {
  const { variant, services, endpoints } = options;
  const otherWork = await watchOtherWork();
  const proxies: Record<string, StormFigures> = {};
  for (const subject of await subjectsOf(options, progress)) {
    progress(subject.name);
    proxies[subject.name] = await measureStorm({ ...options, changes }, subject, progress);
  }
  const machine = await describeMachine(await otherWork());
  const text = jsonText({ machine, options: { variant, services, endpoints }, proxies });
  if (options.save !== undefined) await writeFile(options.save, text);
  process.stdout.write(text);
}

async function connections(options: BenchOptions, count: number, progress: Progress): Promise<void> {
  const otherWork = await watchOtherWork();
  const subjects = await subjectsOf(options, progress);
  const figures = await measureConnections({ ...options, connections: count }, subjects, progress);
  const { mode, variant, services, endpoints } = options;
  const machine = await describeMachine(await otherWork());
  const text = jsonText({ machine, options: { mode, variant, services, endpoints }, connections: figures });
  if (options.save !== undefined) await writeFile(options.save, text);
  process.stdout.write(text);
}

async function profile(options: BenchOptions, folder: string, progress: Progress): Promise<void> {
  for (const file of await takeProfile(options, folder, progress)) console.log(join(folder, file));
}

/** docs/performance.md with its plots, and bench/tables.md. */
async function writeDocument(): Promise<void> {
  const recorded = await loadRecorded();
  await mkdir(DOCS, { recursive: true });
  await writeFile(join(DOCS, "performance.md"), overviewDocument(recorded));
  await writeFile(TABLES_FILE, tablesDocument(recorded));
  for (const [name, svg] of Object.entries(plots(recorded.growth))) await writeFile(join(DOCS, name), svg);
}
