import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { fill } from "../cluster/load.ts";
import type { Size } from "../cluster/objects.ts";
import { type Change, rollOut } from "../cluster/roll-out.ts";
import { untilRest } from "../measure/measure-run.ts";
import { type BedOptions, type Prepared, type Progress, withBed } from "../measure/prepare.ts";
import { requireSameRules } from "../measure/rules.ts";
import { type MeasuredProxy, type ProxyName, writeConfig } from "../proxy/measured-proxy.ts";
import { type RunningProxy, withProxy } from "../proxy/running.ts";
import { changeAtRate, type Rate } from "./changes.ts";
import { delaysOf, timeOf } from "./delays.ts";
import { type ApiFigures, type ChurnRun, type RollingFigures, spreadOf } from "./figures.ts";
import { type KernelTimes, kernelTimes } from "./kernel-times.ts";
import { bytesBetween, type Recording, trafficBetween } from "./recording.ts";
import { openRelay, type RecordingRelay, relayKubeconfig } from "./relay.ts";

export interface ChurnOptions extends BedOptions, Size, Rate {
  /** Of each proxy, in turns. */
  readonly runs: number;
  /** Rolling updates in each run. */
  readonly rollOuts: number;
  /** Of both proxies' configuration. */
  readonly minSyncPeriod: string;
}

const ROLLING = 100;
/** Until the kernel has everything. */
const PATIENCE_MS = 120_000;

/**
 * Measures proxies behind a relay that records when events pass, next to a listener that records when the kernel has
 * them; compares the rules with a fresh start's after each run.
 *
 * @throws Error when changes do not come through, or rules differ
 */
export function measureChurn(
  options: ChurnOptions,
  subjects: readonly MeasuredProxy[],
  progress: Progress,
): Promise<Readonly<Partial<Record<ProxyName, readonly ChurnRun[]>>>> {
  return withBed(options, progress, async (prepared) => {
    await fill(prepared.bed, options);
    const own = join(prepared.bed.folder, "churn");
    await mkdir(own);
    const kubeconfig = await relayKubeconfig(prepared.bed);
    const configFile = await writeConfig(own, options.mode, kubeconfig, options.minSyncPeriod);
    const all: Partial<Record<ProxyName, ChurnRun[]>> = {};
    let first = 0;
    for (let run = 1; run <= options.runs; run++) {
      for (const subject of run % 2 === 1 ? subjects : subjects.toReversed()) {
        progress(`run ${run} of ${options.runs}: ${subject.name}`);
        const figures = await measureRun(prepared, options, { subject, configFile, first });
        all[subject.name] = [...(all[subject.name] ?? []), figures];
        first += options.rollOuts * ROLLING + options.perSecond * options.seconds;
      }
    }
    return all;
  });
}

interface Started {
  readonly subject: MeasuredProxy;
  readonly configFile: string;
  /** Number of the first address of this run. */
  readonly first: number;
}

async function measureRun(prepared: Prepared, options: ChurnOptions, started: Started): Promise<ChurnRun> {
  const { bed, startSettings, readRules, freshRules } = prepared;
  await using relay = await openRelay(bed);
  return await withProxy(bed, { ...startSettings, ...started }, async (running) => {
    const figures = await measureRunning(prepared, options, { relay, running, first: started.first });
    const rules = await readRules(running.node);
    await running.stop();
    requireSameRules("the churn", rules, await freshRules()("churn"));
    return figures;
  });
}

interface Subject {
  readonly relay: RecordingRelay;
  readonly running: RunningProxy;
  readonly first: number;
}

async function measureRunning(
  { bed }: Prepared,
  options: ChurnOptions,
  { relay, running, first }: Subject,
): Promise<ChurnRun> {
  const { api } = bed.controlPlane;
  await untilRest(running.pid);
  const start = await relay.take();
  await using kernel = await kernelTimes(running.node);
  const rolling: RollingFigures[] = [];
  for (let number = 0; number < options.rollOuts; number++) {
    const changes = await rollOut(api, options, ROLLING, first + number * ROLLING);
    rolling.push(rollingFigures(changes, await relayedWhen(relay, kernel, changes), kernel));
  }
  const before = await relay.take();
  const changes = await changeAtRate(api, options, options, first + options.rollOuts * ROLLING);
  const relayed = await relayedWhen(relay, kernel, changes);
  const bytes = bytesBetween(before, await relay.take());
  const apiFigures: ApiFigures = {
    start: trafficBetween(NOTHING, start),
    bytesPerChange: bytes / changes.length,
  };
  const churn = { ...delaysOf(changes, relayed, kernel.found), seconds: options.seconds };
  return { rolling, churn, api: apiFigures };
}

const NOTHING: Recording = { requests: [], addresses: {} };

/** Waits until the kernel has everything. @returns when each event passed the relay */
async function relayedWhen(
  relay: RecordingRelay,
  kernel: KernelTimes,
  changes: readonly Change[],
): Promise<ReadonlyMap<string, number>> {
  const complete = () => changes.every(({ address }) => kernel.found.has(address));
  const done = waitUntil("the last change in the kernel", PATIENCE_MS, async () => complete() || undefined);
  await Promise.race([done, kernel.ended]);
  return new Map(Object.entries((await relay.take()).addresses));
}

function rollingFigures(
  changes: readonly Change[],
  relayed: ReadonlyMap<string, number>,
  kernel: KernelTimes,
): RollingFigures {
  const events = changes.map(({ address }) => timeOf(relayed, address));
  const programmed = changes.map(({ address }) => timeOf(kernel.found, address));
  const lastEvent = Math.max(...events);
  return {
    apiMs: lastEvent - Math.min(...changes.map(({ asked }) => asked)),
    ownMs: Math.max(...programmed) - lastEvent,
    each: spreadOf(programmed.map((time, index) => time - (events[index] ?? time))),
  };
}
