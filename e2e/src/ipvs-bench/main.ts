import { access } from "node:fs/promises";
import { Command } from "commander";
import { requireAgent } from "../agent/agent-file.ts";
import { DEFAULT_KUBERNETES } from "../control-plane/versions.ts";
import { messageOf } from "../support/errors.ts";
import { missingForUml } from "../uml/missing.ts";
import { measureIpvs } from "./run.ts";
import { PROXIES, type ProxyName } from "./settings.ts";
import { comparison, kernelDifferences } from "./table.ts";

interface RawOptions {
  readonly kubeProxy?: string;
  readonly services: string;
  readonly endpoints: string;
  readonly runs: string;
  readonly changes: string;
  readonly output: string;
}

const program = new Command("bench:ipvs")
  .description("ipvs mode in User-Mode Linux beside the real kube-proxy: time, CPU and processes")
  .option("--kube-proxy <file>", "its program; default: FAIRLEAD_KUBE_PROXY, and without it Fairlead alone")
  .option("--services <number>", "services of the load", "1000")
  .option("--endpoints <number>", "endpoints of each", "10")
  .option("--runs <number>", "of each proxy, in alternating order", "1")
  .option("--changes <number>", "endpoint changes in a run", "5")
  .option("-o, --output <format>", "table or json", "table")
  .action(bench);

try {
  await program.parseAsync();
} catch (error) {
  console.error(messageOf(error));
  process.exitCode = 1;
}

async function bench(raw: RawOptions): Promise<void> {
  const missing = await missingForUml();
  if (missing !== undefined) throw new Error(missing);
  await requireAgent();
  const kubeProxy = raw.kubeProxy ?? process.env["FAIRLEAD_KUBE_PROXY"] ?? "";
  if (kubeProxy !== "") await access(kubeProxy);
  const measured: readonly ProxyName[] = kubeProxy === "" ? ["fairlead"] : PROXIES;
  const results = await measureIpvs(
    {
      services: count("--services", raw.services, 10),
      endpoints: count("--endpoints", raw.endpoints, 2),
      changes: count("--changes", raw.changes, 1),
      order: alternating(measured, count("--runs", raw.runs, 1)),
      kubeProxy,
      kubernetes: DEFAULT_KUBERNETES,
      timeoutMs: 3_600_000,
    },
    (line) => console.error(line),
  );
  const differences = kernelDifferences(results);
  if (raw.output === "json") console.log(JSON.stringify({ results, differences }));
  else console.log([comparison(results), ...differences].join("\n"));
}

/** a b, b a, a b … */
function alternating(names: readonly ProxyName[], runs: number): readonly ProxyName[] {
  return Array.from({ length: runs }, (_, run) => (run % 2 === 0 ? names : names.toReversed())).flat();
}

function count(option: string, value: string, least: number): number {
  const number = Number(value);
  if (Number.isInteger(number) && number >= least) return number;
  throw new Error(`${option} ${value}: give a whole number from ${least}`);
}
