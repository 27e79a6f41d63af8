import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ChurnResult } from "../churn/figures.ts";
import { measureChurn } from "../churn/measure-churn.ts";
import { measureConnections } from "../connections/connections.ts";
import { simulateFleet } from "../fleet/simulate-fleet.ts";
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
import { measuredProxies } from "../proxy/measured-proxies.ts";
import { churnTable } from "../report/churn-table.ts";
import { withClusterCost } from "../report/cluster-cost.ts";
import { withResults } from "../report/overview.ts";
import { plots } from "../report/plots.ts";
import { DOCS, loadRecorded, MICRO_FILE } from "../report/recorded.ts";
import { shown } from "../report/shown.ts";

/** @returns whether something else than the benchmark was asked for */
export async function otherWork(options: BenchOptions & OtherWork, progress: Progress): Promise<boolean> {
  if (options.micro === true) await micro(options.record === true);
  else if (options.growth !== undefined) await growth(options, options.growth, progress);
  else if (options.storm !== undefined) await storm(options, options.storm, progress);
  else if (options.churn !== undefined) await churn(options, options.churn, progress);
  else if (options.fleet !== undefined) await fleet(options, options.fleet, progress);
  else if (options.connections !== undefined) await connections(options, options.connections, progress);
  else if (options.profile !== undefined) await profile(options, options.profile, progress);
  else if (options.show !== undefined) process.stdout.write(await shown(options.show));
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
  const others = await watchOtherWork();
  const points = await measureGrowth(options, sizes, progress);
  await report({ machine: await describeMachine(await others()), points }, options);
}

async function storm(options: BenchOptions, changes: number, progress: Progress): Promise<void> {
  const { variant, services, endpoints } = options;
  const others = await watchOtherWork();
  const proxies: Record<string, StormFigures> = {};
  for (const subject of await measuredProxies(options, progress)) {
    progress(subject.name);
    proxies[subject.name] = await measureStorm({ ...options, changes }, subject, progress);
  }
  const machine = await describeMachine(await others());
  await report({ machine, options: { variant, services, endpoints }, proxies }, options);
}

async function churn(options: BenchOptions & OtherWork, perSecond: number, progress: Progress): Promise<void> {
  const others = await watchOtherWork();
  const subjects = await measuredProxies(options, progress);
  const proxies = await measureChurn({ ...options, perSecond }, subjects, progress);
  const { services, endpoints, runs, seconds, minSyncPeriod, kubernetes, kubeProxyVersion } = options;
  const asked = { services, endpoints, runs, perSecond, seconds, minSyncPeriod, kubernetes, kubeProxyVersion };
  const result: ChurnResult = { machine: await describeMachine(await others()), options: asked, proxies };
  if (options.save !== undefined) await writeFile(options.save, jsonText(result));
  process.stdout.write(churnTable(result));
}

async function fleet(options: BenchOptions, agents: number, progress: Progress): Promise<void> {
  await report(await simulateFleet(agents, progress), options);
}

async function connections(options: BenchOptions, count: number, progress: Progress): Promise<void> {
  const others = await watchOtherWork();
  const subjects = await measuredProxies(options, progress);
  const figures = await measureConnections({ ...options, connections: count }, subjects, progress);
  const { mode, variant, services, endpoints } = options;
  const machine = await describeMachine(await others());
  await report({ machine, options: { mode, variant, services, endpoints }, connections: figures }, options);
}

/** Prints what was measured, and writes it to the file of `--save`. */
async function report(result: unknown, { save }: Pick<BenchOptions, "save">): Promise<void> {
  const text = jsonText(result);
  if (save !== undefined) await writeFile(save, text);
  process.stdout.write(text);
}

async function profile(options: BenchOptions, folder: string, progress: Progress): Promise<void> {
  for (const file of await takeProfile(options, folder, progress)) console.log(join(folder, file));
}

/** The table of docs/performance.md, and its plots. */
async function writeDocument(): Promise<void> {
  const { results, growth: series, churn: changing, fleet: many } = await loadRecorded();
  const page = join(DOCS, "performance.md");
  await writeFile(page, withClusterCost(withResults(await readFile(page, "utf8"), results), changing, many));
  for (const [name, svg] of Object.entries(plots(series))) await writeFile(join(DOCS, name), svg);
}
