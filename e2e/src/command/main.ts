import { Command, CommanderError } from "commander";
import { controlPlanePrograms } from "../control-plane/programs.ts";
import { defaultKubernetes, kubernetesVersion } from "../control-plane/versions.ts";
import { messageOf } from "../support/errors.ts";
import { takeDown } from "./down.ts";
import { type RawOptions, readOptions, UsageError } from "./options.ts";
import { run } from "./run.ts";

const USAGE = 2;

const program = new Command("pnpm e2e")
  .description("Specs of Fairlead on clusters with a real control plane, real pod networks and a real kernel")
  .option("--provider <name>", "netns, kind or kind-published", "netns")
  .option("--cni <names>", "pod networks, side by side: the folders of e2e/cni", "bridge")
  .option(
    "--exclude-cni <names>",
    "which of them Fairlead leaves alone, and elsewhere; default: those with their own load balancer",
  )
  .option("--mode <modes>", "iptables, ipvs, nftables, userspace: a cluster for each", "iptables")
  .option("--nodes <number>", "nodes of a cluster", "2")
  .option("--ip-family <family>", "ipv4, ipv6 or dual", "dual")
  .option("--spec <pattern>", "regular expression: only specs whose names match")
  .option("--suite <names>", "services, multi-cni, faults, swap, self-test; default: the first two")
  .option("--package <name>", "only specs about this package (pnpm --filter PACKAGE e2e), of all suites")
  .option("--keep", "leaves the cluster running to look around in, until Ctrl-C")
  .option("--kubernetes <version>", "of the control plane", defaultKubernetes)
  .option("--overlay <name>", "kind: the folder of deploy/overlays that Fairlead comes by; default: the mode's")
  .option("--junit <file>", "where the results go as JUnit XML; default: e2e/.e2e/junit.xml")
  .exitOverride()
  .action(async (options: RawOptions) => {
    process.exitCode = await run(readOptions(options), interrupted());
  });

program
  .command("down")
  .description("removes what earlier runs have left, and ends runs that wait with --keep")
  .action(async () => console.log((await takeDown()).join("\n")));

program
  .command("binaries")
  .description("finds or builds the programs of the control plane and says where they are")
  .option("--kubernetes <version>", "of the control plane", defaultKubernetes)
  .action(async ({ kubernetes }: { kubernetes: string }) => {
    checkVersion(kubernetes);
    const paths = await controlPlanePrograms(kubernetes, console.log);
    console.log(Object.values(paths).join("\n"));
  });

process.exitCode = await main();

async function main(): Promise<number> {
  try {
    await program.parseAsync();
    return Number(process.exitCode ?? 0);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
    console.error(messageOf(error));
    return error instanceof UsageError ? USAGE : 1;
  }
}

/** Aborted by Ctrl-C or SIGTERM; the second one ends at once, and the kernel takes everything along. */
function interrupted(): AbortSignal {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) process.exit(130);
    console.error("\nending; once more to end at once");
    controller.abort();
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  return controller.signal;
}

function checkVersion(kubernetes: string): void {
  try {
    kubernetesVersion(kubernetes);
  } catch (error) {
    throw new UsageError(`--kubernetes: ${messageOf(error)}`);
  }
}
