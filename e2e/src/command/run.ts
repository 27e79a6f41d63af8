import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { AGENT_VARIABLE, requireAgent, settleAgent } from "@fairlead/lab/agent";
import { kubernetesVersion } from "@fairlead/lab/control-plane/programs";
import type { Cluster, ClusterShape } from "@fairlead/lab/provider/cluster";
import type { ClusterRequest, Provider } from "@fairlead/lab/provider/provider";
import { lackText } from "@fairlead/lab/support/machine";
import { RUN_VARIABLE } from "@fairlead/lab/support/script";
import { readDurations, withOutcomes, writeDurations } from "../report/durations.ts";
import { junit } from "../report/junit.ts";
import { count, type Outcome } from "../report/outcome.ts";
import { progressLine, resultTable, summaryLine } from "../report/table.ts";
import { recordRun } from "../report/tested.ts";
import { specsFor } from "../specs/index.ts";
import { buildPrograms } from "./build-programs.ts";
import { checkKeep, keepRunning } from "./keep.ts";
import { watchLeftovers } from "./leftovers.ts";
import { listText } from "./list.ts";
import { type RunOptions, UsageError } from "./options.ts";
import { planSpecs, planText } from "./plan.ts";
import { readRequest } from "./request.ts";
import { runAll } from "./run-all.ts";
import { newRunId, openRunFolder, type RunFolder } from "./run-folder.ts";

/** Where artifacts and the last run's results are kept; git does not look at it. */
const kept = fileURLToPath(new URL("../../.e2e/", import.meta.url));

/** Of the specs that have passed in this checkout. */
const durationsFile = join(kept, "durations.json");

const CANNOT_RUN = 3;

/** How often what the run has on this machine is counted. */
const LOOK_MS = 2_000;

/**
 * Runs what the options ask for on a cluster for each mode.
 *
 * @param signal ends the run; everything is taken down all the same
 * @returns the exit code: 0 all passed, 1 something failed, 3 this machine lacks what the run needs
 * @throws UsageError
 */
export async function run(options: RunOptions, signal: AbortSignal): Promise<number> {
  const { provider, requests } = await readRequest(options);
  if (options.list) {
    for (const request of requests) await list(provider, request, options);
    return 0;
  }
  const [first] = requests;
  const lacks = first === undefined ? [] : await provider.lacks(first);
  if (lacks.length > 0) {
    console.error(`This machine lacks what the run needs:\n${lackText(lacks).replaceAll(/^/gm, "  ")}`);
    return CANNOT_RUN;
  }
  if (options.keep) for (const request of requests) checkKeep(await provider.shape(request));
  await buildPrograms();
  await requireAgent();
  const id = newRunId();
  const leftovers = await watchLeftovers({ variable: [RUN_VARIABLE, id], folderPrefix: id });
  const folder = await openRunFolder(id);
  // Everything that is started from here on can be told by it, whatever becomes of this process.
  process.env[RUN_VARIABLE] = id;
  const outcomes: Outcome[] = [];
  try {
    process.env[AGENT_VARIABLE] = await settleAgent(join(folder.path, "agent"));
    for (const request of requests) {
      if (signal.aborted) break;
      outcomes.push(...(await runCluster({ provider, request, options, folder, signal, look: leftovers.look })));
    }
  } finally {
    await folder.remove();
  }
  await report(options, outcomes);
  const { table, changed, clean } = await leftovers.finish();
  console.log([table, ...changed, ""].join("\n"));
  console.log(summaryLine(outcomes));
  return signal.aborted || outcomes.length === 0 || count(outcomes).failed > 0 || !clean ? 1 : 0;
}

async function list(provider: Provider, request: ClusterRequest, options: RunOptions): Promise<void> {
  const { shape, planned } = await planCluster(provider, request, options);
  console.log(planText(shape, planned, request.kubernetes));
  console.log(listText(request.mode, planned, await readDurations(durationsFile)));
}

/** @throws UsageError when no spec fits the options */
async function planCluster(provider: Provider, request: ClusterRequest, options: RunOptions) {
  const shape = await provider.shape(request);
  const planned = planSpecs(specsFor(options.soak), shape, { ...options, pattern: options.spec });
  if (planned.length === 0) throw new UsageError("no spec of these suites matches --spec");
  return { shape, planned };
}

interface ClusterRun {
  readonly provider: Provider;
  readonly request: ClusterRequest;
  readonly options: RunOptions;
  readonly folder: RunFolder;
  readonly signal: AbortSignal;
  /** Called from time to time while the cluster stands. */
  readonly look: () => Promise<void>;
}

async function runCluster(run: ClusterRun): Promise<readonly Outcome[]> {
  const { provider, request, options, folder, signal, look } = run;
  const started = performance.now();
  const { shape, planned } = await planCluster(provider, request, options);
  console.log(`${planText(shape, planned, request.kubernetes)}\n`);
  const progress = (line: string) => console.log(`  ${seconds(started)}  ${line}`);
  const own = join(folder.path, request.mode);
  await mkdir(own, { recursive: true });
  const cluster = await provider.open(request, own, progress);
  let looks = Promise.resolve();
  // One after the other, and a look at what is just ending may fail.
  const looking = setInterval(() => {
    looks = looks.then(look).catch(() => {});
  }, LOOK_MS);
  try {
    const outcomes = await runAll({
      cluster,
      planned,
      artifacts: join(kept, folder.id),
      onOutcome: (outcome) => console.log(progressLine(outcome)),
      signal,
    });
    if (options.record && !signal.aborted) await record(run, shape, cluster, outcomes);
    if (options.keep && !signal.aborted) await keepRunning(cluster, folder, signal);
    return outcomes;
  } finally {
    clearInterval(looking);
    await cluster.dispose();
    progress("taken down\n");
  }
}

/** The runs that are recorded, and the page of them: part of the project. */
const recorded = {
  runs: fileURLToPath(new URL("../../tested.json", import.meta.url)),
  page: fileURLToPath(new URL("../../../docs/tested.md", import.meta.url)),
};

async function record(
  { request, options }: ClusterRun,
  { networks }: ClusterShape,
  { nodes }: Cluster,
  outcomes: readonly Outcome[],
): Promise<void> {
  const { passed, failed } = count(outcomes);
  const [node] = nodes;
  if (failed > 0 || node === undefined) return;
  const { stdout } = await node.run(["uname", "-r"]);
  const { provider, suites } = options;
  const { mode } = request;
  const kubernetes = kubernetesVersion(request.kubernetes);
  const date = new Date().toISOString().slice(0, 10);
  // Without what a distribution adds to it.
  const kernel = /^\d+(?:\.\d+)*/.exec(stdout)?.[0] ?? "";
  const about = { date, kubernetes, kernel, provider, mode, networks: networks.map(({ name }) => name) };
  await recordRun({ ...about, families: request.families, suites, specs: passed }, recorded);
}

async function report(options: RunOptions, outcomes: readonly Outcome[]): Promise<void> {
  const file = options.junit ?? join(kept, "junit.xml");
  for (const folder of [dirname(file), kept]) await mkdir(folder, { recursive: true });
  await writeFile(file, junit(`${options.provider} ${options.cni.join(",")}`, outcomes));
  await writeDurations(durationsFile, withOutcomes(await readDurations(durationsFile), outcomes));
  console.log(`${resultTable(outcomes)}\n`);
}

function seconds(started: number): string {
  return `${((performance.now() - started) / 1000).toFixed(1)} s`.padStart(7);
}
