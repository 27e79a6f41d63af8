import { setTimeout as sleep } from "node:timers/promises";
import type { MeasuredProxy } from "../proxy/measured-proxy.ts";
import { type RunningProxy, withProxy } from "../proxy/running.ts";
import { fullSyncTime } from "../proxy/sync-metrics.ts";
import type { RunFigures } from "./figures.ts";
import { bytesReceived, cpuSeconds, exactCpuSeconds, memory } from "./process-figures.ts";
import { type RuleDigests, requireSameRules } from "./rules.ts";
import type { Setting } from "./setting.ts";
import { type Counts, type Timing, Workload } from "./work.ts";

/** The longest that one change may take. */
const PATIENCE_MS = 10 * 60_000;

/**
 * Starts a proxy on a new node, gives it all kinds of work, and compares the rules after each with those that a fresh
 * start writes. The objects are as before when it ends.
 *
 * @throws Error when rules differ
 */
export function measureRun(setting: Setting, subject: MeasuredProxy, idleSeconds: number): Promise<RunFigures> {
  const { bed, startSettings } = setting;
  return withProxy(bed, { subject, ...startSettings }, (running) => measureRunning(setting, running, idleSeconds));
}

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
    serviceAdded: timesOf(added),
    serviceRemoved: timesOf(removed),
    rollOut,
  };
}

/** Both runtimes have collected by then what a start leaves, and that is no part of the changes that follow. */
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
