import { requireAgent } from "@fairlead/lab/agent/agent-file";
import { missingForUml } from "@fairlead/lab/uml/missing";
import { measureIpvs } from "../ipvs/run.ts";
import { type Measured, PROXIES } from "../ipvs/settings.ts";
import { kernelDifferences } from "../ipvs/table.ts";
import { kubeProxyProgram } from "../proxy/kube-proxy-program.ts";
import type { BenchOptions } from "./options.ts";
import type { Progress } from "./prepare.ts";

/** What ipvs mode came to, run by run. */
export interface IpvsFigures {
  readonly results: readonly Omit<Measured, "kernel">[];
  /** What the kernel held in the end after one of the proxies only. */
  readonly differences: readonly string[];
}

const GUEST_MS = 60 * 60_000;

/**
 * Measures in User-Mode Linux, in one boot, the proxies in turns.
 *
 * @throws Error that says what is missing, or with the guest's last words
 */
export async function runIpvsBench(options: BenchOptions, progress: Progress): Promise<IpvsFigures> {
  const missing = await missingForUml();
  if (missing !== undefined) throw new Error(missing);
  await requireAgent();
  const { services, endpoints, changes, runs, kubernetes, against, kubeProxyVersion } = options;
  const kubeProxy = against === undefined ? "" : await kubeProxyProgram(kubeProxyVersion, progress);
  const names = against === undefined ? (["fairlead"] as const) : PROXIES;
  const order = Array.from({ length: runs }, (_, run) => (run % 2 === 0 ? names : names.toReversed())).flat();
  const request = { services, endpoints, changes, order, kubeProxy, kubernetes, timeoutMs: GUEST_MS };
  const measured = await measureIpvs(request, progress);
  const results = measured.map(({ kernel: _, ...figures }) => figures);
  return { results, differences: kernelDifferences(measured) };
}
