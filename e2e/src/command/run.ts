/** One run: its cluster, its specs, its report. */

import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { AGENT_VARIABLE, namedAgent, requireAgent, settleAgent } from "@fairlead/lab/agent";
import { kubernetesVersion } from "@fairlead/lab/control-plane/programs";
import type { Cluster, ClusterShape } from "@fairlead/lab/provider/cluster";
import type { ClusterRequest, Provider } from "@fairlead/lab/provider/provider";
import { lackText } from "@fairlead/lab/support/machine";
import { messageOf } from "@fairlead/lab/support/processes";
import { RUN_VARIABLE } from "@fairlead/lab/support/script";
import { hasTool } from "@fairlead/lab/tools/page-reader";
import { execa } from "execa";
import {
  count,
  junit,
  type Outcome,
  progressLine,
  type Result,
  recordRun,
  resultTable,
  specsPassed,
  summaryLine,
} from "../report.ts";
import { specsFor } from "../specs/index.ts";
import { runSpec, runsByItself } from "../specs/spec.ts";
import { type RunOptions, UsageError } from "./options.ts";
import { familyField, type PlannedSpec, planSpecs, planText, readRequest } from "./plan.ts";
import { checkKeep, keepRunning, leftovers, newRunId, openRunFolder, type RunFolder } from "./run-folder.ts";

const CANNOT_RUN = 3;

/**
 * Runs what the options ask for on a cluster for each mode.
 *
 * @param signal ends the run; everything is taken down all the same
 * @returns the exit code: 0 all passed, 1 something failed, 3 this machine lacks what the run needs
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
  const folder = await openRunFolder(id);
  // It marks everything that is started from here on, whatever becomes of this process.
  process.env[RUN_VARIABLE] = id;
  const outcomes: Outcome[] = [];
  try {
    process.env[AGENT_VARIABLE] = await settleAgent(join(folder.path, "agent"));
    for (const request of requests) {
      if (signal.aborted) break;
      outcomes.push(...(await runCluster({ provider, request, options, folder, signal })));
    }
  } finally {
    await folder.remove();
  }
  await report(options, outcomes);
  const left = await leftovers(id);
  for (const line of left) console.log(line);
  console.log(summaryLine(outcomes));
  return signal.aborted || outcomes.length === 0 || count(outcomes).failed > 0 || left.length > 0 ? 1 : 0;
}

export function listText(planned: readonly PlannedSpec[]): string {
  const rows = planned.map(({ spec, title, unfit }) => {
    const needs = [
      ...(runsByItself(spec) ? ["runs by itself"] : []),
      ...(unfit === undefined ? [] : [`not here: ${unfit}`]),
    ];
    return `  ${spec.suite.padEnd(16)}  ${title}${needs.length === 0 ? "" : ` (${needs.join("; ")})`}`;
  });
  return rows.join("\n");
}

/** Where artifacts and the last run's results are kept; git does not look at it. */
const kept = fileURLToPath(new URL("../../.e2e/", import.meta.url));

async function list(provider: Provider, request: ClusterRequest, options: RunOptions): Promise<void> {
  const { shape, planned } = await planCluster(provider, request, options);
  console.log(planText(shape, planned, request.kubernetes));
  console.log(listText(planned));
}

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
}

async function runCluster(run: ClusterRun): Promise<readonly Outcome[]> {
  const { provider, request, options, folder, signal } = run;
  const started = performance.now();
  const { shape, planned } = await planCluster(provider, request, options);
  console.log(`${planText(shape, planned, request.kubernetes)}\n`);
  const progress = (line: string) => console.log(`  ${seconds(started)}  ${line}`);
  const own = join(folder.path, request.mode);
  await mkdir(own, { recursive: true });
  const cluster = await provider.open(request, own, progress);
  try {
    const outcomes = await runAll({
      cluster,
      planned,
      artifacts: join(kept, folder.id),
      onOutcome: (outcome) => console.log(progressLine(outcome)),
      signal,
    });
    const minutes = Math.ceil((performance.now() - started) / 60_000);
    if (options.record && !signal.aborted) await record(run, shape, cluster, { outcomes, minutes });
    if (options.keep && !signal.aborted) await keepRunning(cluster, folder, signal);
    return outcomes;
  } finally {
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
  { outcomes, minutes }: { readonly outcomes: readonly Outcome[]; readonly minutes: number },
): Promise<void> {
  const [node] = nodes;
  if (count(outcomes).failed > 0 || node === undefined) return;
  const { stdout } = await node.run(["uname", "-r"]);
  const { provider, suites } = options;
  const { mode } = request;
  const kubernetes = kubernetesVersion(request.kubernetes);
  const date = new Date().toISOString().slice(0, 10);
  // Without what a distribution adds to it.
  const kernel = /^\d+(?:\.\d+)*/.exec(stdout)?.[0] ?? "";
  const about = { date, kubernetes, kernel, provider, mode, networks: networks.map(({ name }) => name) };
  await recordRun({ ...about, families: request.families, suites, specs: specsPassed(outcomes), minutes }, recorded);
}

async function report(options: RunOptions, outcomes: readonly Outcome[]): Promise<void> {
  const file = options.junit ?? join(kept, "junit.xml");
  for (const folder of [dirname(file), kept]) await mkdir(folder, { recursive: true });
  await writeFile(file, junit(`${options.provider} ${options.cni.join(",")}`, outcomes));
  console.log(`${resultTable(outcomes)}\n`);
}

function seconds(started: number): string {
  return `${((performance.now() - started) / 1000).toFixed(1)} s`.padStart(7);
}

interface RunAll {
  readonly cluster: Cluster;
  readonly planned: readonly PlannedSpec[];
  /** Where the state of the cluster is kept when a spec fails. */
  readonly artifacts: string;
  readonly onOutcome: (outcome: Outcome) => void;
  /** No further spec begins once it is aborted. */
  readonly signal: AbortSignal;
}

/** Specs mostly wait; so many at once do not disturb each other on two cores. */
const LANES = 3;

/** Runs the specs, some at a time, and then those that want to be only. */
async function runAll(run: RunAll): Promise<readonly Outcome[]> {
  const { planned, cluster, onOutcome } = run;
  const outcomes: Outcome[] = [];
  const one = async (item: PlannedSpec, number: number) => {
    const started = performance.now();
    const result = await runOne(run, item, `spec-${number}`);
    const { name, suite } = item.spec;
    const ms = performance.now() - started;
    const outcome = { name, suite, mode: cluster.mode, ...familyField(item.spec, item.family), ms, result };
    outcomes.push(outcome);
    onOutcome(outcome);
  };
  const queue = planned.map((item, index) => [item, index + 1] as const);
  const byThemselves = queue.filter(([{ spec }]) => runsByItself(spec));
  const together = queue.filter(([{ spec }]) => !runsByItself(spec));
  await drain(together, LANES, run.signal, one);
  await drain(byThemselves, 1, run.signal, one);
  return outcomes;
}

async function drain(
  queue: readonly (readonly [PlannedSpec, number])[],
  lanes: number,
  signal: AbortSignal,
  one: (item: PlannedSpec, number: number) => Promise<void>,
): Promise<void> {
  const waiting = [...queue];
  const lane = async () => {
    for (let next = waiting.shift(); next !== undefined && !signal.aborted; next = waiting.shift()) await one(...next);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

async function runOne({ cluster, artifacts, signal }: RunAll, item: PlannedSpec, namespace: string): Promise<Result> {
  const { spec, family, title, unfit } = item;
  if (unfit !== undefined) return { kind: "skipped", reason: unfit };
  let kept: string | undefined;
  try {
    const figures = await runSpec(spec, cluster, family, namespace, async (error) => {
      // Ctrl-C reaches the cluster's processes too: what fails then has found nothing.
      if (!signal.aborted) kept = await keepArtifacts(artifacts, `${cluster.mode}-${title}`, cluster, error);
    });
    return { kind: "passed", ...(figures !== undefined && { figures }) };
  } catch (error) {
    if (signal.aborted) return { kind: "skipped", reason: "interrupted" };
    return {
      kind: "failed",
      message: withoutToken(messageOf(error), cluster),
      ...(kept !== undefined && { artifacts: kept }),
    };
  }
}

const root = fileURLToPath(new URL("../../../", import.meta.url));

/**
 * Brings the bundles of the agent and of the command line tool up to date. Where FAIRLEAD_AGENT names an agent, nothing
 * that is there is built anew: others may be running it.
 */
async function buildPrograms(): Promise<void> {
  const named = namedAgent() !== undefined;
  const outdated = [...(named ? [] : ["@fairlead/agent"]), ...(named && (await hasTool()) ? [] : ["@fairlead/cli"])];
  if (outdated.length === 0) return;
  const filters = outdated.map((name) => `--filter=${name}`);
  const args = ["exec", "turbo", "run", "build", ...filters, "--output-logs=errors-only"];
  const result = await execa("pnpm", args, { cwd: root, reject: false, all: true });
  if (result.failed) throw new Error(`${outdated.join(" and ")} do not build:\n${result.all}`);
}

/** Keeps what every node knows in a folder of its own below `folder`; gives that folder. */
async function keepArtifacts(folder: string, title: string, cluster: Cluster, error: unknown): Promise<string> {
  const own = join(folder, title.replaceAll(/[^\w.-]+/g, "-"));
  // On a machine too busy for it the failure is what there is.
  const state = await cluster.state().catch((reason) => ({ "no-state.txt": `${messageOf(reason)}\n` }));
  const files = { "failure.txt": `${messageOf(error)}\n`, ...state };
  for (const [name, text] of Object.entries(files)) {
    const file = join(own, name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, withoutToken(text, cluster));
  }
  return own;
}

/** What is kept or printed is passed on: errors print command lines, and files of a node may hold anything. */
export function withoutToken(text: string, { apiServer }: { readonly apiServer: { readonly token: string } }): string {
  return text.replaceAll(apiServer.token, "[token]");
}
