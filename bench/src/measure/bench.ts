import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { requireAgent } from "@fairlead/lab/agent";
import { controlPlanePrograms } from "@fairlead/lab/control-plane/programs";
import { ownPrefix } from "@fairlead/lab/support/run-inventory";
import { type Bed, openBed } from "../cluster/bed.ts";
import { fill } from "../cluster/load.ts";
import {
  fairlead,
  type MeasuredProxy,
  measuredProxies,
  type ProxyName,
  settledAgent,
  toolPath,
  type Variant,
  writeConfig,
} from "../proxy/measured-proxy.ts";
import { LateStartError, startProxy } from "../proxy/running.ts";
import { freshRulesOf, measureRun, type Setting } from "./measure-run.ts";
import type { BenchOptions, Mode } from "./options.ts";
import { watchOtherWork } from "./process-figures.ts";
import type { ProxyFigures, Result, RunFigures, Unfinished } from "./result.ts";
import { type RulesReader, readNftRules, readRules } from "./rules.ts";

/** What was measured, and how many cores other processes kept busy meanwhile. */
interface Measurement {
  readonly proxies: Result["proxies"];
  readonly others: number;
}

/** Rounds of a service added and removed, and endpoints of the rolling update. */
const SERVICE_ROUNDS = 5;
const ROLLING = 100;

/**
 * Measures the proxies one after the other, in turns, on one control plane.
 *
 * @param pace how long a start rests
 */
export async function runBench(
  options: BenchOptions,
  progress: Progress,
  pace: Pick<Setting, "restMs"> = {},
): Promise<Measurement> {
  const { services, endpoints, changes } = options;
  const subjects = await measuredProxies(options, progress);
  return withBed(options, progress, async ({ bed, startSettings, readRules, freshRules }) => {
    const size = { services, endpoints };
    progress(`writing ${services} services with ${endpoints} endpoints each to the API`);
    await fill(bed, size);
    const counts = { changes, services: Math.min(SERVICE_ROUNDS, changes), rolling: ROLLING };
    const setting = { bed, size, counts, ...pace, startSettings, readRules, freshRules: freshRules() };
    const otherWork = await watchOtherWork();
    const proxies = await measureAll(setting, subjects, options, progress);
    return { proxies, others: await otherWork() };
  });
}

/** Says what is being done, a line each. */
export type Progress = (line: string) => void;

/** What a benchmark on this machine's kernel is opened with. */
export interface BedOptions {
  readonly mode: Mode;
  readonly variant: Variant;
  /** Version of the control plane. */
  readonly kubernetes: string;
  /** Seconds for a proxy's first sync. */
  readonly patience: number;
}

/** A control plane without services, and how proxies are started alongside it. */
export interface Prepared {
  readonly bed: Bed;
  readonly startSettings: Setting["startSettings"];
  readonly readRules: RulesReader;
  /** Asks a fresh Fairlead for its rules, once for each step. */
  freshRules(): Setting["freshRules"];
}

/** How the rules of each mode are read. */
const readers: Readonly<Record<Mode, (variant: Variant) => RulesReader>> = {
  iptables: (variant) => (node) => readRules(node, variant),
  nftables: () => readNftRules,
};

/** Opens a bed for as long as `use` takes; nothing is left after it. */
export async function withBed<T>(
  { mode, variant, kubernetes, patience }: BedOptions,
  progress: Progress,
  use: (prepared: Prepared) => Promise<T>,
): Promise<T> {
  await requireAgent();
  const programs = await controlPlanePrograms(kubernetes, progress);
  const folder = await mkdtemp(join(tmpdir(), `${await ownPrefix("fairlead-bench")}-`));
  try {
    await using bed = await openBed(programs, folder);
    const configFile = await writeConfig(folder, mode, bed.controlPlane.proxyKubeconfig);
    const path = await toolPath(join(folder, "bin"), variant);
    const agent = await settledAgent(folder);
    const startSettings = { variant, configFile, agent, path, patience: patience * 1000 };
    const readRules = readers[mode](variant);
    const freshRules = () =>
      freshRulesOf(
        () => startProxy(bed, { ...startSettings, subject: fairlead() }),
        ({ node }) => readRules(node),
      );
    return await use({ bed, startSettings, readRules, freshRules });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function measureAll(
  setting: Setting,
  subjects: readonly [MeasuredProxy, ...MeasuredProxy[]],
  options: BenchOptions,
  progress: Progress,
): Promise<Result["proxies"]> {
  const { all, unfinished } = await measureRuns(setting, subjects, options, progress);
  const figuresOf = ({ name }: MeasuredProxy): ProxyFigures => ({ runs: all.get(name) ?? [] });
  const [own, other] = subjects;
  return { fairlead: figuresOf(own), ...(other && { "kube-proxy": unfinished ?? figuresOf(other) }) };
}

interface AllRuns {
  readonly all: ReadonlyMap<ProxyName, readonly RunFigures[]>;
  readonly unfinished: Unfinished | undefined;
}

/** Once kube-proxy has not come to its end it has no more runs. */
async function measureRuns(
  setting: Setting,
  subjects: readonly MeasuredProxy[],
  { runs, idle }: BenchOptions,
  progress: Progress,
): Promise<AllRuns> {
  const all = new Map<ProxyName, RunFigures[]>(subjects.map(({ name }) => [name, []]));
  let unfinished: Unfinished | undefined;
  for (let run = 1; run <= runs; run++) {
    // The first proxy changes from run to run.
    for (const subject of run % 2 === 1 ? subjects : subjects.toReversed()) {
      if (subject.name === "kube-proxy" && unfinished !== undefined) continue;
      progress(`run ${run} of ${runs}: ${subject.name}`);
      const measured = await measureRun(setting, subject, run === 1 ? idle : 0).catch(lateKubeProxy(subject));
      if ("unfinishedAfterMs" in measured) unfinished = measured;
      else all.get(subject.name)?.push(measured);
    }
  }
  return { all, unfinished };
}

/** A kube-proxy that takes too long is a result, too; Fairlead's is a failure. */
function lateKubeProxy({ name }: MeasuredProxy): (error: unknown) => Unfinished {
  return (error) => {
    if (name === "kube-proxy" && error instanceof LateStartError) return { unfinishedAfterMs: error.waitedMs };
    throw error;
  };
}
