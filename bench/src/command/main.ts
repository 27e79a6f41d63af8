import { Command, CommanderError, Option } from "commander";
import { runBench } from "../measure/bench.ts";
import { describeMachine } from "../report/machine.ts";
import { markdownTable, textTable } from "../report/render.ts";
import { type Result, resultText, saveResult } from "../report/result.ts";
import { rowsOf } from "../report/rows.ts";
import { type BenchOptions, numberFrom } from "./options.ts";

const USAGE = 2;

const program = new Command("pnpm bench")
  .description("Fairlead and kube-proxy on the same work, one after the other, on a real control plane")
  .addOption(new Option("--mode <mode>", "of both proxies").choices(["iptables", "ipvs"]).default("iptables"))
  .addOption(new Option("--variant <variant>", "of iptables").choices(["nft", "legacy"]).default("nft"))
  .option("--services <number>", "how many there are", numberFrom(2), 1000)
  .option("--endpoints <number>", "of each service", numberFrom(1), 10)
  .addOption(new Option("--against <proxy>", "what Fairlead is compared with").choices(["kube-proxy"]))
  .option("--runs <number>", "of each proxy, in turns", numberFrom(1), 5)
  .option("--changes <number>", "of one endpoint, in each run", numberFrom(1), 50)
  .option("--idle <seconds>", "also measure the CPU of this time without changes, in the first run", numberFrom(0), 0)
  .option("--kubernetes <version>", "of the control plane and of kube-proxy", "v1.37")
  .addOption(new Option("-o, --output <form>", "of the result").choices(["json", "table", "markdown"]).default("table"))
  .option("--save <file>", "keep all figures there, as JSON")
  .exitOverride()
  .action(bench);

process.exitCode = await main();

async function main(): Promise<number> {
  try {
    await program.parseAsync();
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
    console.error(error instanceof Error ? error.message : String(error));
    return 1;
  }
}

async function bench(options: BenchOptions): Promise<void> {
  const { mode, variant, services, endpoints, runs, changes, kubernetes } = options;
  const started = performance.now();
  const progress = (line: string) => console.error(`${((performance.now() - started) / 1000).toFixed(1)} s  ${line}`);
  const proxies = await runBench(options, progress);
  const asked = { mode, variant, services, endpoints, runs, changes, kubernetes };
  const result: Result = { machine: await describeMachine(), options: asked, proxies };
  if (options.save !== undefined) await saveResult(options.save, result);
  process.stdout.write(resultIn(options.output, result));
}

function resultIn(output: BenchOptions["output"], result: Result): string {
  if (output === "json") return resultText(result);
  const rows = rowsOf(result.proxies.fairlead, result.proxies["kube-proxy"]);
  return output === "markdown" ? markdownTable(rows) : textTable(rows);
}
