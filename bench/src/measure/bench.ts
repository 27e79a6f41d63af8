import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { controlPlanePrograms } from "@fairlead/e2e/control-plane/programs";
import { type Bed, openBed } from "../cluster/bed.ts";
import { fill } from "../cluster/load.ts";
import type { BenchOptions } from "../command/options.ts";
import { kubeProxyProgram } from "../proxy/kube-proxy-program.ts";
import { startProxy } from "../proxy/running.ts";
import { fairlead, kubeProxy, type Subject, type SubjectName, writeConfig } from "../proxy/subject.ts";
import { toolPath } from "../proxy/tools.ts";
import type { Result } from "../report/result.ts";
import type { ProxyFigures, RunFigures } from "./figures.ts";
import { freshRulesOf, measureRun } from "./measure-run.ts";
import { recordRun } from "./record-run.ts";
import { readRules } from "./rules.ts";
import type { Setting } from "./setting.ts";

type Progress = (line: string) => void;

/** Rounds of a service added and removed, and endpoints of the rolling update. */
const SERVICE_ROUNDS = 10;
const ROLLING = 100;

/**
 * Measures the proxies one after the other, in turns, on one control plane.
 *
 * @throws Error when something does not start, or when rules are not what they should be
 */
export async function runBench(options: BenchOptions, progress: Progress): Promise<Result["proxies"]> {
  const folder = await mkdtemp(join(tmpdir(), "fairlead-bench-"));
  try {
    const programs = await controlPlanePrograms(options.kubernetes, progress);
    const proxies = [fairlead(), ...(await rivals(options, progress))];
    await using bed = await openBed(programs, folder);
    const setting = await prepare(options, bed, progress);
    return await measureAll(setting, proxies, options, progress);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function rivals({ against, kubernetes }: BenchOptions, progress: Progress): Promise<readonly Subject[]> {
  return against === undefined ? [] : [kubeProxy(await kubeProxyProgram(kubernetes, progress))];
}

async function prepare(options: BenchOptions, bed: Bed, progress: Progress): Promise<Setting> {
  const { mode, variant, services, endpoints, changes } = options;
  const size = { services, endpoints };
  progress(`writing ${services} services with ${endpoints} endpoints each to the API`);
  await fill(bed.controlPlane.api, size);
  const configFile = await writeConfig(bed.folder, mode, bed.controlPlane.proxyKubeconfig);
  const path = await toolPath(join(bed.folder, "bin"), variant);
  const startSettings = { variant, configFile, path };
  const counts = { changes, services: Math.min(SERVICE_ROUNDS, changes), rolling: ROLLING };
  const freshRules = freshRulesOf(
    () => startProxy(bed, { ...startSettings, proxy: fairlead() }),
    ({ node }) => readRules(node, variant),
  );
  return { bed, size, counts, startSettings, freshRules };
}

async function measureAll(
  setting: Setting,
  proxies: readonly Subject[],
  { runs, idle }: BenchOptions,
  progress: Progress,
): Promise<Result["proxies"]> {
  const all = new Map<SubjectName, RunFigures[]>(proxies.map(({ name }) => [name, []]));
  for (let run = 1; run <= runs; run++) {
    // Who is first changes from run to run.
    for (const proxy of run % 2 === 1 ? proxies : [...proxies].reverse()) {
      progress(`run ${run} of ${runs}: ${proxy.name}`);
      all.get(proxy.name)?.push(await measureRun(setting, proxy, run === 1 ? idle : 0));
    }
  }
  const figuresOf = async (proxy: Subject): Promise<ProxyFigures> => {
    progress(`recording ${proxy.name}`);
    return { runs: all.get(proxy.name) ?? [], recorded: await recordRun(setting, proxy) };
  };
  const [own, other] = proxies;
  if (own === undefined) throw new Error("there is nothing to measure");
  return { fairlead: await figuresOf(own), ...(other && { "kube-proxy": await figuresOf(other) }) };
}
