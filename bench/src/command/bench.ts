import { runIpvsBench } from "../ipvs/run.ts";
import { comparison } from "../ipvs/table.ts";
import { runBench } from "../measure/bench.ts";
import { watchOtherWork } from "../measure/company.ts";
import { jsonText } from "../measure/json.ts";
import { describeMachine } from "../measure/machine.ts";
import type { BenchOptions } from "../measure/options.ts";
import type { Progress } from "../measure/prepare.ts";
import { type Result, saveResult } from "../measure/result.ts";
import { markdownTable, textTable } from "../report/render.ts";
import { rowsOf } from "../report/rows.ts";

/** What measures each mode. */
const benches: Readonly<Record<BenchOptions["mode"], typeof benchHere>> = {
  iptables: benchHere,
  nftables: benchHere,
  ipvs: benchIpvs,
};

/** Measures, keeps and prints. */
export function bench(options: BenchOptions, progress: Progress): Promise<void> {
  return benches[options.mode](options, progress);
}

async function benchHere(options: BenchOptions, progress: Progress): Promise<void> {
  const { proxies, others } = await runBench(options, progress);
  const result: Result = { machine: await describeMachine(others), options: asked(options), proxies };
  if (options.save !== undefined) await saveResult(options.save, result);
  process.stdout.write(resultIn(options.output, result));
}

/** Both proxies in one User-Mode Linux, which has IPVS where the machine's own kernel has none. */
async function benchIpvs(options: BenchOptions, progress: Progress): Promise<void> {
  const otherWork = await watchOtherWork();
  const measured = await runIpvsBench(options, progress);
  const result = { machine: await describeMachine(await otherWork()), options: asked(options), ...measured };
  if (options.save !== undefined) await saveResult(options.save, result);
  const table = `${[comparison(result.results), ...result.differences].join("\n")}\n`;
  process.stdout.write(options.output === "json" ? jsonText(result) : table);
}

function asked(options: BenchOptions): Result["options"] {
  const { mode, variant, services, endpoints, runs, changes, kubernetes, kubeProxyVersion } = options;
  return { mode, variant, services, endpoints, runs, changes, kubernetes, kubeProxyVersion };
}

function resultIn(output: BenchOptions["output"], result: Result): string {
  if (output === "json") return jsonText(result);
  const rows = rowsOf(result.proxies.fairlead, result.proxies["kube-proxy"]);
  return output === "markdown" ? markdownTable(rows) : textTable(rows);
}
