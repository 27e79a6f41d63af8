/** `pnpm bench`: measures, keeps figures, and writes docs/performance.md from them. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorText } from "@fairlead/base";
import { DEFAULT_KUBERNETES, FOLLOWED_KUBERNETES } from "@fairlead/lab/control-plane/programs";
import { Command, CommanderError, Option } from "commander";
import type { ChurnResult } from "../churn/figures.ts";
import { measureChurn } from "../churn/measure-churn.ts";
import { simulateFleet } from "../fleet.ts";
import { type Progress, runBench } from "../measure/bench.ts";
import { measureGrowth } from "../measure/growth.ts";
import { type BenchOptions, numberFrom, type OtherWork, sizesFrom } from "../measure/options.ts";
import { describeMachine, watchOtherWork } from "../measure/process-figures.ts";
import { jsonText, type Result, saveResult } from "../measure/result.ts";
import { measuredProxies } from "../proxy/measured-proxy.ts";
import { churnTable, withClusterCost } from "../report/cluster-cost.ts";
import { DOCS, loadRecorded, shown, withGrowth, withResults } from "../report/overview.ts";
import { markdownTable, rowsOf, textTable } from "../report/rows.ts";

const USAGE = 2;

const program = new Command("pnpm bench")
  .description("Fairlead and kube-proxy on the same work, one after the other, on a real control plane")
  .addOption(new Option("--mode <mode>", "of both proxies").choices(["iptables", "nftables"]).default("iptables"))
  .addOption(new Option("--variant <variant>", "of iptables").choices(["nft", "legacy"]).default("nft"))
  .option("--services <number>", "how many there are", numberFrom(2), 1000)
  .option("--endpoints <number>", "of each service", numberFrom(1), 10)
  .addOption(new Option("--against <proxy>", "what Fairlead is compared with").choices(["kube-proxy"]))
  .option("--runs <number>", "of each proxy, in turns", numberFrom(1), 5)
  .option("--changes <number>", "of one endpoint, in each run", numberFrom(1), 50)
  .option("--idle <seconds>", "also measure the CPU of this time without changes, in the first run", numberFrom(0), 0)
  .option(
    "--patience <seconds>",
    "for a proxy's first sync; a kube-proxy that takes longer is left there",
    numberFrom(1),
    1800,
  )
  .option("--kubernetes <version>", "of the control plane", DEFAULT_KUBERNETES)
  .option("--kube-proxy-version <version>", "of kube-proxy", FOLLOWED_KUBERNETES)
  .addOption(new Option("-o, --output <form>", "of the result").choices(["json", "table", "markdown"]).default("table"))
  .option("--save <file>", "keep all figures there, as JSON; relative to bench")
  .option("--growth <sizes>", "only Fairlead, at these numbers of services, such as 100,1000", sizesFrom)
  .option(
    "--churn <changes>",
    "of endpoints in a second, nftables mode: when events come and when the kernel has them, what the API server sends",
    numberFrom(1),
  )
  .option("--seconds <number>", "with --churn: how long", numberFrom(1), 30)
  .option(
    "--roll-outs <number>",
    "with --churn: rolling updates of 100 endpoints before it, in each run",
    numberFrom(1),
    3,
  )
  .option("--min-sync-period <duration>", "with --churn: of both proxies", "10ms")
  .option(
    "--fleet <agents>",
    "requests of many agents and of as many kube-proxies, simulated: in an hour, and after the API server's restart",
    numberFrom(1),
  )
  .option("--show <file>", "print the figures that --save kept; relative to bench")
  .option("--document", "make the tables of docs/performance.md from bench/results")
  .exitOverride()
  .action(async (options: BenchOptions & OtherWork) => {
    const started = performance.now();
    const progress = (line: string) => console.error(`${((performance.now() - started) / 1000).toFixed(1)} s  ${line}`);
    if (options.growth !== undefined) await growth(options, options.growth, progress);
    else if (options.churn !== undefined) await churn(options, options.churn, progress);
    else if (options.fleet !== undefined) await report(await simulateFleet(options.fleet, progress), options);
    else if (options.show !== undefined) process.stdout.write(await shown(options.show));
    else if (options.document === true) await writeDocument();
    else await bench(options, progress);
  });

process.exitCode = await main();

async function main(): Promise<number> {
  try {
    await program.parseAsync();
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
    console.error(errorText(error));
    return 1;
  }
}

/** Measures, keeps and prints. */
async function bench(options: BenchOptions, progress: Progress): Promise<void> {
  const { proxies, others } = await runBench(options, progress);
  const { mode, variant, services, endpoints, runs, changes, kubernetes, kubeProxyVersion } = options;
  const asked = { mode, variant, services, endpoints, runs, changes, kubernetes, kubeProxyVersion };
  const result: Result = { machine: await describeMachine(others), options: asked, proxies };
  if (options.save !== undefined) await saveResult(options.save, result);
  process.stdout.write(resultIn(options.output, result));
}

function resultIn(output: BenchOptions["output"], result: Result): string {
  if (output === "json") return jsonText(result);
  const rows = rowsOf(result.proxies.fairlead, result.proxies["kube-proxy"]);
  return output === "markdown" ? markdownTable(rows) : textTable(rows);
}

async function growth(options: BenchOptions, sizes: readonly number[], progress: Progress): Promise<void> {
  const others = await watchOtherWork();
  const points = await measureGrowth(options, sizes, progress);
  await report({ machine: await describeMachine(await others()), points }, options);
}

async function churn(options: BenchOptions & OtherWork, perSecond: number, progress: Progress): Promise<void> {
  const others = await watchOtherWork();
  const subjects = await measuredProxies(options, progress);
  const proxies = await measureChurn({ ...options, perSecond }, subjects, progress);
  const { services, endpoints, runs, seconds, minSyncPeriod, kubernetes, kubeProxyVersion } = options;
  const asked = { services, endpoints, runs, perSecond, seconds, minSyncPeriod, kubernetes, kubeProxyVersion };
  const result: ChurnResult = { machine: await describeMachine(await others()), options: asked, proxies };
  if (options.save !== undefined) await writeFile(options.save, jsonText(result));
  process.stdout.write(churnTable(result));
}

/** Prints what was measured, and writes it to the file of `--save`. */
async function report(result: unknown, { save }: Pick<BenchOptions, "save">): Promise<void> {
  const text = jsonText(result);
  if (save !== undefined) await writeFile(save, text);
  process.stdout.write(text);
}

/** The tables of docs/performance.md. */
async function writeDocument(): Promise<void> {
  const { results, growth: series, churn: changing, fleet: many } = await loadRecorded();
  const page = join(DOCS, "performance.md");
  const text = withGrowth(withResults(await readFile(page, "utf8"), results), series);
  await writeFile(page, withClusterCost(text, changing, many));
}
