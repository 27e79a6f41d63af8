import { controlPlanePrograms } from "@fairlead/lab/control-plane/programs";
import { messageOf } from "@fairlead/lab/support/processes";
import { CommanderError } from "commander";
import { runCostSuite } from "../cost/suite.ts";
import { runWindowsSuite } from "../windows/suite.ts";
import { commandLine, kubernetesOption, pattern, readOptions, UsageError } from "./options.ts";
import { run } from "./run.ts";
import { takeDown } from "./run-folder.ts";

const USAGE = 2;
/** What taking a cluster down may take after Ctrl-C. */
const GRACE_MS = 5_000;

const program = commandLine({
  run: async (options) => {
    process.exitCode = await run(readOptions(options), interrupted());
  },
  down: async () => console.log((await takeDown()).join("\n")),
  binaries: async (kubernetes) => {
    const paths = await controlPlanePrograms(kubernetesOption(kubernetes), console.log);
    console.log(Object.values(paths).join("\n"));
  },
  cost: async (spec) => {
    process.exitCode = await runCostSuite(pattern(spec), console.log);
  },
  windows: async (seed) => {
    process.exitCode = await runWindowsSuite(seed, console.log);
  },
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

/**
 * Aborted by Ctrl-C or SIGTERM. What then takes longer, or is asked twice, ends at once; the kernel takes all
 * processes along.
 */
function interrupted(): AbortSignal {
  const controller = new AbortController();
  const endAtOnce = () => {
    console.error("ended; pnpm e2e down removes what is left");
    process.exit(130);
  };
  const stop = () => {
    if (controller.signal.aborted) endAtOnce();
    console.error(`\nending, within ${GRACE_MS / 1000} s`);
    controller.abort();
    setTimeout(endAtOnce, GRACE_MS).unref();
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  return controller.signal;
}
