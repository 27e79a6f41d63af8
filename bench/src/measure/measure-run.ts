import { setTimeout as sleep } from "node:timers/promises";
import { type ApiClient, objectPath } from "@fairlead/lab/control-plane/api-client";
import { now } from "@fairlead/lab/support/wait-until";
import type { Bed } from "../cluster/bed.ts";
import { createSlices, deleteSlices, moveEndpoints, rollOut } from "../cluster/load.ts";
import { movedAddress, type Size, serviceObject } from "../cluster/objects.ts";
import type { MeasuredProxy } from "../proxy/measured-proxy.ts";
import { fullSyncTime, type RunningProxy, type StartSettings, withProxy } from "../proxy/running.ts";
import { bytesReceived, cpuSeconds, exactCpuSeconds, memory } from "./process-figures.ts";
import { median, type RunFigures } from "./result.ts";
import { type RuleDigests, type RulesReader, requireSameRules } from "./rules.ts";

/**
 * Starts a proxy on a new node, gives it all kinds of work, and compares the rules after each with those that a fresh
 * start writes. The objects are as before when it ends.
 */
export function measureRun(setting: Setting, subject: MeasuredProxy, idleSeconds: number): Promise<RunFigures> {
  const { bed, startSettings } = setting;
  return withProxy(bed, { subject, ...startSettings }, (running) => measureRunning(setting, running, idleSeconds));
}

/** By then both runtimes have collected the garbage of the start, which does not belong to the changes that follow. */
const REST_MS = 30_000;

/**
 * Lets what follows a start come to its end.
 *
 * @returns CPU seconds that it took
 */
export async function untilRest(pid: number): Promise<number> {
  const before = await exactCpuSeconds(pid);
  await sleep(REST_MS);
  return (await exactCpuSeconds(pid)) - before;
}

/** Rules that Fairlead writes at a start on the objects as they are; asked for once for each step. */
export function freshRulesOf(
  start: () => Promise<RunningProxy>,
  read: (running: RunningProxy) => Promise<RuleDigests>,
): (step: string) => Promise<RuleDigests> {
  const known = new Map<string, Promise<RuleDigests>>();
  const make = async () => {
    await using running = await start();
    return await read(running);
  };
  return (step) => {
    const rules = known.get(step) ?? make();
    known.set(step, rules);
    return rules;
  };
}

/** How often each kind of change is measured. */
interface Counts {
  readonly changes: number;
  /** A service added and removed again. */
  readonly services: number;
  /** Endpoints of the rolling update. */
  readonly rolling: number;
}

/** What all runs of a benchmark have in common. */
export interface Setting {
  readonly bed: Bed;
  readonly size: Size;
  readonly counts: Counts;
  readonly startSettings: Omit<StartSettings, "subject">;
  /** Milliseconds after a first sync in which nothing changes. Default 30,000; a start's CPU is not taken with less. */
  readonly restMs?: number;
  readonly readRules: RulesReader;
  /** The rules of a fresh start on the objects as they are after this step. */
  readonly freshRules: (step: string) => Promise<RuleDigests>;
}

/** What a change took from the request on, in milliseconds. */
interface Timing {
  /** Until the kernel had the rules. */
  readonly synced: number;
  /** Until the API server had answered: no proxy hears of a change much earlier. */
  readonly answered: number;
  /** Seconds of CPU until then. */
  readonly cpu: number;
}

/** The changes that a proxy is given while it is measured, on objects of one size. */
export class Workload {
  readonly #api: ApiClient;
  readonly #size: Size;
  readonly #patienceMs: number;
  /** No sync for as long as this: there is nothing left to do. Longer than any single change took. */
  #quietMs = 300;

  /** @param patienceMs what a sync may take at most */
  constructor(api: ApiClient, size: Size, patienceMs: number) {
    this.#api = api;
    this.#size = size;
    this.#patienceMs = patienceMs;
  }

  /**
   * Gives one endpoint another address, `count` times.
   */
  async changeEndpoint(proxy: RunningProxy, count: number): Promise<readonly Timing[]> {
    const times: Timing[] = [];
    for (let number = 1; number <= count; number++) times.push(await this.#move(proxy, movedAddress(number)));
    return times;
  }

  /** Adds a service with its endpoints and removes it, `count` times. */
  async addAndRemove(
    proxy: RunningProxy,
    count: number,
  ): Promise<{ readonly added: readonly Timing[]; readonly removed: readonly Timing[] }> {
    const index = this.#size.services;
    const service = serviceObject(index);
    const added: Timing[] = [];
    const removed: Timing[] = [];
    for (let round = 0; round < count; round++) {
      await createSlices(this.#api, index, this.#size.endpoints);
      await proxy.log.lastSync(this.#quietMs);
      added.push(await this.#timed(proxy, () => this.#api.create(service)));
      removed.push(await this.#timed(proxy, () => this.#api.delete(objectPath(service))));
      await deleteSlices(this.#api, index, this.#size.endpoints);
      await proxy.log.lastSync(this.#quietMs);
    }
    return { added, removed };
  }

  /**
   * Replaces endpoints as Kubernetes' controller does when workloads roll.
   *
   * @returns from the first request on, until the last answer and the last rules
   */
  async rollOut(proxy: RunningProxy, count: number): Promise<Omit<Timing, "cpu">> {
    const started = now();
    await rollOut(this.#api, this.#size, count, ROLLED_FROM);
    const answered = now() - started;
    return { synced: (await proxy.log.lastSync(this.#quietMs)) - started, answered };
  }

  /** Gives all endpoints their first addresses. */
  async restore(rolling: number): Promise<void> {
    const { services, endpoints } = this.#size;
    const rolled = Math.min(services, Math.ceil(rolling / endpoints));
    const touched = new Set([this.#middle, ...Array.from({ length: rolled }, (_, index) => index)]);
    for (const index of touched) await moveEndpoints(this.#api, index, endpoints, new Map());
  }

  get #middle(): number {
    return Math.floor(this.#size.services / 2);
  }

  #move(proxy: RunningProxy, to: string): Promise<Timing> {
    const moved = new Map([[0, to]]);
    return this.#timed(proxy, () => moveEndpoints(this.#api, this.#middle, this.#size.endpoints, moved, 0));
  }

  async #timed(proxy: RunningProxy, request: () => Promise<unknown>): Promise<Timing> {
    const before = await exactCpuSeconds(proxy.pid);
    const asked = now();
    await request();
    const answered = now() - asked;
    const synced = (await proxy.log.syncAfter(asked, this.#patienceMs)) - asked;
    const cpu = (await exactCpuSeconds(proxy.pid)) - before;
    this.#quietMs = Math.max(this.#quietMs, 2 * synced);
    await sleep(BETWEEN_MS);
    return { synced, answered, cpu };
  }
}

/** The longest that one change may take. */
const PATIENCE_MS = 10 * 60_000;

async function measureRunning(setting: Setting, running: RunningProxy, idleSeconds: number): Promise<RunFigures> {
  const { bed, size, counts, restMs = REST_MS } = setting;
  const { pid } = running;
  const firstSync = {
    ms: running.syncedAt - running.startedAt,
    cpu: await cpuSeconds(pid),
    apiBytes: await bytesReceived(pid, "eth0"),
  };
  const synced = await memory(pid);
  const fullSyncMs = await fullSyncTime(running.node);
  await sleep(restMs);
  const restedCpu = restMs < REST_MS ? undefined : await cpuSeconds(pid);
  const idle = await idleCpu(pid, idleSeconds);
  const steady = await memory(pid);
  const check = (step: string) => checkRules(setting, running, step);
  await check("start");
  const work = new Workload(bed.controlPlane.api, size, PATIENCE_MS);
  const endpointChange = await changes(running, work, counts);
  await check(`${counts.changes} endpoint changes`);
  const { added, removed } = await work.addAndRemove(running, counts.services);
  await check("services added and removed");
  const beforeRollOut = await exactCpuSeconds(pid);
  const { synced: ms, answered: apiMs } = await work.rollOut(running, counts.rolling);
  const rollOut = { ms, apiMs, cpu: (await exactCpuSeconds(pid)) - beforeRollOut };
  await check(`rolling update of ${counts.rolling}`);
  const { peak } = await memory(pid);
  await running.stop();
  await work.restore(counts.rolling);
  return {
    firstSync,
    fullSyncMs,
    ...(restedCpu !== undefined && { restedCpu }),
    memory: { synced: synced.now, steady: steady.now, peak },
    ...(idle !== undefined && { idleCpu: idle }),
    endpointChange,
    serviceAdded: { ...timesOf(added), cpu: median(added.map(({ cpu }) => cpu)) },
    serviceRemoved: { ...timesOf(removed), cpu: median(removed.map(({ cpu }) => cpu)) },
    rollOut,
  };
}

/** The first look after a syncPeriod of 30 s, too. */
const SETTLED_MS = 10_000;

async function idleCpu(pid: number, seconds: number): Promise<number | undefined> {
  if (seconds === 0) return undefined;
  await sleep(SETTLED_MS);
  const before = await exactCpuSeconds(pid);
  await sleep(seconds * 1000);
  return (((await exactCpuSeconds(pid)) - before) * 60) / seconds;
}

async function changes(running: RunningProxy, work: Workload, counts: Counts): Promise<RunFigures["endpointChange"]> {
  const before = await exactCpuSeconds(running.pid);
  const timings = await work.changeEndpoint(running, counts.changes);
  return { ...timesOf(timings), cpu: ((await exactCpuSeconds(running.pid)) - before) / counts.changes };
}

function timesOf(timings: readonly Timing[]) {
  return { ms: timings.map(({ synced }) => synced), apiMs: timings.map(({ answered }) => answered) };
}

async function checkRules(setting: Setting, running: RunningProxy, step: string): Promise<void> {
  const expected = await setting.freshRules(step);
  requireSameRules(step, await setting.readRules(running.node), expected);
}

/** Number of a rolling update's first address. */
const ROLLED_FROM = 1000;
/** Longer than `minSyncPeriod`: no change waits for the one before. */
const BETWEEN_MS = 50;
