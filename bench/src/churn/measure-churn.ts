import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type ApiClient, objectPath } from "@fairlead/lab/control-plane/api-client";
import { kubeconfig, PORT, USERS } from "@fairlead/lab/control-plane/control-plane";
import { FROM_SOURCES, startScript } from "@fairlead/lab/support/script";
import { now, waitUntil } from "@fairlead/lab/support/wait-until";
import { type Bed, FABRIC } from "../cluster/bed.ts";
import { type Change, fill, rollOut } from "../cluster/load.ts";
import { endpointList, movedAddress, type Size, sliceObject } from "../cluster/objects.ts";
import { type BedOptions, type Prepared, type Progress, withBed } from "../measure/bench.ts";
import { untilRest } from "../measure/measure-run.ts";
import { requireSameRules } from "../measure/rules.ts";
import { type MeasuredProxy, type ProxyName, writeConfig } from "../proxy/measured-proxy.ts";
import { type RunningProxy, withProxy } from "../proxy/running.ts";
import {
  type ApiFigures,
  bytesBetween,
  type ChurnRun,
  delaysOf,
  type Recording,
  type RollingFigures,
  spreadOf,
  timeOf,
  trafficBetween,
} from "./figures.ts";
import { type KernelTimes, kernelTimes } from "./kernel-times.ts";

/** How many changes, and how fast. */
interface Rate {
  readonly perSecond: number;
  readonly seconds: number;
}

interface ChurnOptions extends BedOptions, Size, Rate {
  /** Of each proxy, in turns. */
  readonly runs: number;
  /** Rolling updates in each run. */
  readonly rollOuts: number;
  /** Of both proxies' configuration. */
  readonly minSyncPeriod: string;
}

const ROLLING = 100;

/**
 * Measures proxies behind a relay that records when events pass, next to a listener that records when the kernel has
 * them; compares the rules with a fresh start's after each run.
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

/** By which the services' turn comes: neighbors in time are not neighbors in number. */
const STEP = 7919;

/**
 * Changes one endpoint of another service each time, at an even rate, whatever the API server's answers take. Each
 * slice says when its change was triggered, as the EndpointSlice controller does.
 *
 * @param first the number of the first address; no number may come twice in the life of a proxy
 */
export async function changeAtRate(api: ApiClient, size: Size, rate: Rate, first: number): Promise<readonly Change[]> {
  const started = performance.now();
  const changes: Change[] = [];
  const requests: Promise<unknown>[] = [];
  for (let number = 0; number < rate.perSecond * rate.seconds; number++) {
    const wait = started + (number * 1000) / rate.perSecond - performance.now();
    if (wait > 0) await sleep(wait);
    const address = movedAddress(first + number);
    changes.push({ address, asked: now() });
    const request = change(api, size, ((first + number) * STEP) % size.services, address);
    // What fails meanwhile is thrown in the end.
    request.catch(() => {});
    requests.push(request);
  }
  await Promise.all(requests);
  return changes;
}

/** Until the kernel has everything. */
const PATIENCE_MS = 120_000;

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

/** What stands between a proxy and the API server and records what passes. */
interface RecordingRelay {
  /** What has passed since its start. */
  take(): Promise<Recording>;
  [Symbol.asyncDispose](): Promise<void>;
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

const MAIN = fileURLToPath(new URL("recording-relay-main.ts", import.meta.url));
const RELAY_PORT = 7443;

/** One at a time. */
async function openRelay({ controlPlane: { certificate }, fabric }: Bed): Promise<RecordingRelay> {
  const { certFile = "", keyFile = "" } = certificate ?? {};
  const args = [certFile, keyFile, FABRIC, String(RELAY_PORT), String(PORT)];
  const script = await startScript(fabric, MAIN, args, FROM_SOURCES);
  return {
    take: async () => JSON.parse(await script.ask("take")),
    [Symbol.asyncDispose]: () => script.stop(),
  };
}

/** @returns a kubeconfig file for proxies that talk to the API server by the relay */
async function relayKubeconfig({ controlPlane: { certificate }, folder }: Bed): Promise<string> {
  const own = join(folder, "relay");
  await mkdir(own, { recursive: true });
  const file = join(own, "kubeconfig");
  const server = `https://${FABRIC}:${RELAY_PORT}`;
  const caFile = certificate?.certFile ?? "";
  await writeFile(file, kubeconfig({ server, caFile, token: USERS.proxy.token }), { mode: 0o600 });
  return file;
}

const TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time";

function change(api: ApiClient, { endpoints }: Size, index: number, address: string): Promise<unknown> {
  return api.patch(objectPath(sliceObject(index, endpoints)), {
    metadata: { annotations: { [TRIGGER_TIME]: new Date(now()).toISOString() } },
    endpoints: endpointList(index, endpoints, 0, new Map([[0, address]])),
  });
}
