import { fill } from "../cluster/load.ts";
import { fairlead } from "../proxy/measured-proxy.ts";
import { type RunningProxy, withProxy } from "../proxy/running.ts";
import { type BedOptions, type Prepared, type Progress, withBed } from "./bench.ts";
import { untilRest, Workload } from "./measure-run.ts";
import { cpuSeconds, exactCpuSeconds, memory } from "./process-figures.ts";
import { median } from "./result.ts";
import { requireSameRules } from "./rules.ts";

/** Fairlead at one size. Milliseconds, CPU seconds, MB. */
export interface GrowthPoint {
  readonly services: number;
  readonly firstSync: { readonly ms: number; readonly cpu: number };
  /** CPU until what follows the start has come to its end; absent: not measured. */
  readonly afterStartCpu?: number;
  /** Medians; CPU of one change. */
  readonly endpointChange: { readonly ms: number; readonly cpu: number };
  readonly resident: number;
}

const ENDPOINTS = 10;
const CHANGES = 30;
const PATIENCE_MS = 10 * 60_000;

/** Measures only Fairlead, at growing sizes, and compares its rules after the changes with a fresh start's. */
export function measureGrowth(
  options: BedOptions,
  sizes: readonly number[],
  progress: Progress,
): Promise<readonly GrowthPoint[]> {
  return withBed(options, progress, async (prepared) => {
    const points: GrowthPoint[] = [];
    let there = 0;
    for (const services of [...sizes].sort((a, b) => a - b)) {
      progress(`${services} services`);
      await fill(prepared.bed, { services, endpoints: ENDPOINTS }, there);
      there = services;
      points.push(await measurePoint(prepared, services));
    }
    return points;
  });
}

function measurePoint(prepared: Prepared, services: number): Promise<GrowthPoint> {
  const { bed, startSettings } = prepared;
  return withProxy(bed, { ...startSettings, subject: fairlead() }, (running) =>
    measureRunning(prepared, running, services),
  );
}

async function measureRunning(
  { bed, readRules, freshRules }: Prepared,
  running: RunningProxy,
  services: number,
): Promise<GrowthPoint> {
  const { pid, startedAt, syncedAt, node } = running;
  const firstSync = { ms: syncedAt - startedAt, cpu: await cpuSeconds(pid) };
  const afterStartCpu = await untilRest(pid);
  const work = new Workload(bed.controlPlane.api, { services, endpoints: ENDPOINTS }, PATIENCE_MS);
  const before = await exactCpuSeconds(pid);
  const times = await work.changeEndpoint(running, CHANGES);
  const endpointChange = {
    ms: median(times.map(({ synced }) => synced)),
    cpu: ((await exactCpuSeconds(pid)) - before) / CHANGES,
  };
  const resident = (await memory(pid)).now;
  const fresh = await freshRules()("changes");
  requireSameRules(`${services} services`, await readRules(node), fresh);
  await work.restore(0);
  return { services, firstSync, afterStartCpu, endpointChange, resident };
}
