import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fill } from "../cluster/load.ts";
import { type MeasuredProxy, measuredProxies, type ProxyName } from "../proxy/measured-proxy.ts";
import { LateStartError } from "../proxy/running.ts";
import { watchOtherWork } from "./company.ts";
import type { ProxyFigures, RunFigures, Unfinished } from "./figures.ts";
import { measureRun } from "./measure-run.ts";
import type { BenchOptions } from "./options.ts";
import { type Progress, withBed } from "./prepare.ts";
import { recordRun } from "./record-run.ts";
import type { Result } from "./result.ts";
import type { Setting } from "./setting.ts";

/** Rounds of a service added and removed, and endpoints of the rolling update. */
const SERVICE_ROUNDS = 5;
const ROLLING = 100;

/** What was measured, and how many cores other processes kept busy meanwhile. */
export interface Measurement {
  readonly proxies: Result["proxies"];
  readonly others: number;
}

/**
 * Measures the proxies one after the other, in turns, on one control plane.
 *
 * @param pace how long a start rests
 * @throws Error when something does not start, or when rules are not what they should be
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
    if (options.waitFor !== undefined) await waitForFile(options.waitFor, progress);
    const otherWork = await watchOtherWork();
    const proxies = await measureAll(setting, subjects, options, progress);
    return { proxies, others: await otherWork() };
  });
}

const LOOK_EVERY_MS = 100;

async function waitForFile(file: string, progress: Progress): Promise<void> {
  progress(`everything is there; waiting for ${file}`);
  while (!existsSync(file)) await sleep(LOOK_EVERY_MS);
}

async function measureAll(
  setting: Setting,
  subjects: readonly [MeasuredProxy, ...MeasuredProxy[]],
  options: BenchOptions,
  progress: Progress,
): Promise<Result["proxies"]> {
  const { all, unfinished } = await measureRuns(setting, subjects, options, progress);
  const figuresOf = async (subject: MeasuredProxy): Promise<ProxyFigures> => {
    progress(`recording ${subject.name}`);
    return { runs: all.get(subject.name) ?? [], recorded: await recordRun(setting, subject) };
  };
  const [own, other] = subjects;
  const fairlead = await figuresOf(own);
  return { fairlead, ...(other && { "kube-proxy": unfinished ?? (await figuresOf(other)) }) };
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
    // Who is first changes from run to run.
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
