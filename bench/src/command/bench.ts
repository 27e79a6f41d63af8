import { measureIpvs } from "@fairlead/e2e/uml/bench/run";
import { PROXIES } from "@fairlead/e2e/uml/bench/settings";
import { comparison, kernelDifferences } from "@fairlead/e2e/uml/bench/table";
import { missingForUml } from "@fairlead/e2e/uml/missing";
import { runBench } from "../measure/bench.ts";
import type { Progress } from "../measure/prepare.ts";
import { kubeProxyProgram } from "../proxy/kube-proxy-program.ts";
import { jsonText } from "../report/json.ts";
import { describeMachine } from "../report/machine.ts";
import { markdownTable, textTable } from "../report/render.ts";
import { type Result, saveResult } from "../report/result.ts";
import { rowsOf } from "../report/rows.ts";
import type { BenchOptions } from "./options.ts";

/** Measures, keeps and prints. */
export async function bench(options: BenchOptions, progress: Progress): Promise<void> {
  if (options.mode === "ipvs") return benchIpvs(options, progress);
  const { mode, variant, services, endpoints, runs, changes, kubernetes, kubeProxyVersion } = options;
  const proxies = await runBench(options, progress);
  const asked = { mode, variant, services, endpoints, runs, changes, kubernetes, kubeProxyVersion };
  const result: Result = { machine: await describeMachine(), options: asked, proxies };
  if (options.save !== undefined) await saveResult(options.save, result);
  process.stdout.write(resultIn(options.output, result));
}

function resultIn(output: BenchOptions["output"], result: Result): string {
  if (output === "json") return jsonText(result);
  const rows = rowsOf(result.proxies.fairlead, result.proxies["kube-proxy"]);
  return output === "markdown" ? markdownTable(rows) : textTable(rows);
}

const GUEST_MS = 60 * 60_000;

/** Both proxies in one User-Mode Linux, which has IPVS where the machine's own kernel has none. */
async function benchIpvs(options: BenchOptions, progress: Progress): Promise<void> {
  const missing = await missingForUml();
  if (missing !== undefined) throw new Error(missing);
  const { services, endpoints, changes, runs, kubernetes, against } = options;
  const kubeProxy = against === undefined ? "" : await kubeProxyProgram(options.kubeProxyVersion, progress);
  const turns = Array.from({ length: runs }, (_, run) => (run % 2 === 0 ? PROXIES : PROXIES.toReversed()));
  const order = against === undefined ? turns.map(() => "fairlead" as const) : turns.flat();
  const request = { services, endpoints, changes, order, kubeProxy, kubernetes, timeoutMs: GUEST_MS };
  const results = await measureIpvs(request, progress);
  const differences = kernelDifferences(results);
  const text = JSON.stringify({ results, differences }, null, 2);
  console.log(options.output === "json" ? text : [comparison(results), ...differences].join("\n"));
}
