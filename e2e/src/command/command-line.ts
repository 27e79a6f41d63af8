import { DEFAULT_KUBERNETES } from "@fairlead/lab/control-plane/programs";
import { Command } from "commander";
import { SUITES } from "../specs/spec.ts";
import type { RawOptions } from "./options.ts";

/** What the command line can ask for. */
export interface Actions {
  run(options: RawOptions): Promise<void>;
  down(): Promise<void>;
  /** @param kubernetes as it was written */
  binaries(kubernetes: string): Promise<void>;
  /** Counts what packets cost. @param spec as it was written */
  cost(spec: string | undefined): Promise<void>;
}

/** The suite that has no cluster: guests in QEMU, whose packets' instructions are counted. */
const COST = "cost";

/** The command line of `pnpm e2e`. It throws CommanderError instead of ending the process. */
export function commandLine(actions: Actions): Command {
  const program = new Command("pnpm e2e")
    .description("Specs of Fairlead on clusters with a real control plane, real pod networks and a real kernel")
    .option("--provider <name>", "netns, kind or kind-published", "netns")
    .option("--cni <names>", "pod networks, side by side: the folders of lab/src/cni", "bridge")
    .option(
      "--exclude-cni <names>",
      "which of them Fairlead leaves alone, and elsewhere; default: those with their own load balancer",
    )
    .option("--mode <modes>", "iptables, ipvs, nftables, userspace: a cluster for each", "iptables")
    .option("--nodes <number>", "nodes of a cluster", "2")
    .option("--ip-family <family>", "ipv4, ipv6 or dual", "dual")
    .option("--spec <pattern>", "regular expression: only specs whose names match")
    .option("--suite <names>", `${SUITES.join(", ")}; default: services, multi-cni; or cost, by itself`)
    .option("--package <name>", "only specs about this package (pnpm --filter PACKAGE e2e), of all suites")
    .option("--hours <number>", "how long the suite soak lasts", "0.1")
    .option("--seed <number>", "repeats the steps of a soak; default: a new one, which is in the spec's name")
    .option("--list", "says which specs would run, what each needs and how long it took the last time")
    .option("--keep", "leaves the cluster running to look around in, until Ctrl-C")
    .option("--kubernetes <version>", "of the control plane", DEFAULT_KUBERNETES)
    .option("--overlay <name>", "kind: the folder of deploy/overlays that Fairlead comes by; default: the mode's")
    .option("--record", "adds a run in which everything passed to docs/tested.md; not with --spec or --package")
    .option("--junit <file>", "where the results go as JUnit XML; default: e2e/.e2e/junit.xml")
    // What stands behind a subcommand is the subcommand's, though the program has an option of that name.
    .enablePositionalOptions()
    .exitOverride()
    .action((options: RawOptions) =>
      options["suite"] === COST ? actions.cost(text(options["spec"])) : actions.run(options),
    );

  program
    .command("down")
    .description("removes what earlier runs have left, and ends runs that wait with --keep")
    .action(() => actions.down());

  program
    .command("binaries")
    .description("finds or builds the programs of the control plane and says where they are")
    .option("--kubernetes <version>", "of the control plane", DEFAULT_KUBERNETES)
    .action(({ kubernetes }: { kubernetes: string }) => actions.binaries(kubernetes));
  return program;
}

function text(value: RawOptions[string]): string | undefined {
  return typeof value === "string" ? value : undefined;
}
