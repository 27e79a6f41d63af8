import { errorText } from "@fairlead/base";
import { DEFAULT_KUBERNETES } from "@fairlead/lab/control-plane/versions";
import { Command, CommanderError, Option } from "commander";
import { type BenchOptions, numberFrom, type OtherWork, sizesFrom } from "../measure/options.ts";
import { bench } from "./bench.ts";
import { otherWork } from "./other-work.ts";

const USAGE = 2;

const program = new Command("pnpm bench")
  .description("Fairlead and kube-proxy on the same work, one after the other, on a real control plane")
  .addOption(
    new Option("--mode <mode>", "of both proxies").choices(["iptables", "nftables", "ipvs"]).default("iptables"),
  )
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
  .option("--kube-proxy-version <version>", "of kube-proxy", "v1.37")
  .addOption(new Option("-o, --output <form>", "of the result").choices(["json", "table", "markdown"]).default("table"))
  .option("--wait-for <file>", "prepare everything, and measure once this file is there and the machine is quiet")
  .option("--save <file>", "keep all figures there, as JSON; relative to bench")
  .option("--micro", "micro benchmarks of the packages instead, compared with those recorded")
  .option("--record", "with --micro: record them")
  .option("--growth <sizes>", "Fairlead alone at these numbers of services, such as 100,1000", sizesFrom)
  .option(
    "--storm <changes>",
    "of endpoints, as fast as the API server takes them: memory before and after",
    numberFrom(1),
  )
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
  .option(
    "--outage <seconds>",
    "with --churn: the API server is away for so long at the end of the first run",
    numberFrom(0),
    0,
  )
  .option("--min-sync-period <duration>", "with --churn: of both proxies", "10ms")
  .option(
    "--fleet <agents>",
    "requests of many agents and of as many kube-proxies, simulated: in an hour, and after the API server's restart",
    numberFrom(1),
  )
  .option(
    "--connections <number>",
    "new ones in each round: what one costs behind the rules of each proxy, and without rules",
    numberFrom(1),
  )
  .option("--profile <folder>", "leave a CPU profile and a heap snapshot of Fairlead there, for Chrome")
  .option("--show <file>", "print the figures that --save kept; relative to bench")
  .option("--document", "make the table and the plots of docs/performance.md from bench/results")
  .exitOverride()
  .action(async (options: BenchOptions & OtherWork) => {
    const started = performance.now();
    const progress = (line: string) => console.error(`${((performance.now() - started) / 1000).toFixed(1)} s  ${line}`);
    if (!(await otherWork(options, progress))) await bench(options, progress);
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
