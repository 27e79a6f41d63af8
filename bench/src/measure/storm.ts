import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ApiClient } from "@fairlead/lab/control-plane/api-client";
import { atOnce, fill, moveEndpoints } from "../cluster/load.ts";
import { movedAddress, type Size } from "../cluster/objects.ts";
import { fairlead, loopFigures, loopProbe, type MeasuredProxy } from "../proxy/measured-proxy.ts";
import { type RunningProxy, withProxy } from "../proxy/running.ts";
import { type BedOptions, type Progress, withBed } from "./prepare.ts";
import { cpuSeconds, memory } from "./process-figures.ts";
import { requireSameRules } from "./rules.ts";

export interface StormOptions extends BedOptions, Size {
  /** Of single endpoints. */
  readonly changes: number;
}

/** One proxy in a storm of endpoint changes. Memory in MB (10⁶ bytes), as it is resident. */
export interface StormFigures {
  readonly changes: number;
  /** Until the last request to the API server. */
  readonly seconds: number;
  /** CPU seconds of the changes and the rest after them. */
  readonly cpu: number;
  readonly memory: {
    /** After the start and a rest. */
    readonly before: number;
    /** The most that was seen between two changes. */
    readonly during: number;
    /** After the changes and a rest. */
    readonly after: number;
    /** What `after` has more than `before`, in percent. */
    readonly growth: number;
  };
  /** Milliseconds of processor time that the event loop was held at most, from start to end; of a Node program. */
  readonly longestTurnCpuMs?: number;
}

/** No sync for as long as this: the changes have come through. Longer than any single sync takes. */
const QUIET_MS = 8_000;
/** V8 gives back what it does not need within some ten seconds. */
const REST_MS = 30_000;
const LOOK_EVERY = 1_000;

/**
 * Gives a proxy endpoint changes as fast as the API server takes them, as a rolling update of everything would, and
 * compares its rules afterwards with those of a fresh start.
 *
 * @throws Error when rules differ
 */
export function measureStorm(options: StormOptions, subject: MeasuredProxy, progress: Progress): Promise<StormFigures> {
  return withBed(options, progress, async (prepared) => {
    const { bed, startSettings, readRules, freshRules } = prepared;
    await fill(bed, options);
    progress(`${options.services} services with ${options.endpoints} endpoints are there`);
    const loopFile = join(await mkdtemp(join(bed.folder, "storm-")), "loop");
    const probed = subject.name === "fairlead" ? fairlead(await loopProbe(loopFile)) : subject;
    const figures = await withProxy(bed, { ...startSettings, subject: probed }, async (running) => {
      const measured = await storm(running, bed.controlPlane.api, options, progress);
      const rules = await readRules(running.node);
      await running.stop();
      requireSameRules("the storm", rules, await freshRules()("storm"));
      return measured;
    });
    const loop = await loopFigures(loopFile);
    return loop === undefined ? figures : { ...figures, longestTurnCpuMs: loop.cpu };
  });
}

async function storm(
  { pid, log }: RunningProxy,
  api: ApiClient,
  options: StormOptions,
  progress: Progress,
): Promise<StormFigures> {
  const resident = async () => (await memory(pid)).now;
  const atRest = async () => {
    await log.lastSync(QUIET_MS);
    await sleep(REST_MS);
    return resident();
  };
  const before = await atRest();
  progress(`at rest: ${before.toFixed(0)} MB`);
  const cpuBefore = await cpuSeconds(pid);
  const started = performance.now();
  let during = before;
  await changeEndpoints(api, options, async (done) => {
    const now = await resident();
    during = Math.max(during, now);
    if (done % (10 * LOOK_EVERY) === 0) progress(`${done} changes: ${now.toFixed(0)} MB`);
  });
  const seconds = (performance.now() - started) / 1000;
  const after = await atRest();
  const cpu = (await cpuSeconds(pid)) - cpuBefore;
  const { changes } = options;
  return { changes, seconds, cpu, memory: { before, during, after, growth: (after / before - 1) * 100 } };
}

/** One endpoint with each request; services side by side. */
async function changeEndpoints(
  api: ApiClient,
  { services, endpoints, changes }: StormOptions,
  reported: (done: number) => Promise<void>,
): Promise<void> {
  const moved = Array.from({ length: services }, () => new Map<number, string>());
  let done = 0;
  await atOnce(0, Math.ceil(changes / endpoints), async (turn) => {
    const index = turn % services;
    const addresses = moved[index] ?? new Map<number, string>();
    for (let place = 0; place < endpoints && turn * endpoints + place < changes; place++) {
      addresses.set(place, movedAddress(turn * endpoints + place));
      await moveEndpoints(api, index, endpoints, addresses, place);
      if (++done % LOOK_EVERY === 0) await reported(done);
    }
  });
}
