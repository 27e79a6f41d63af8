// The process fairlead-controller: one command line, and the controller until a signal ends it.
import { errorChainText } from "@fairlead/base";
import { formatError, parseControllerArguments } from "@fairlead/config";
import { version } from "../about/version.ts";
import { createLog } from "../log.ts";
import { setUpEngine } from "../start/engine.ts";
import {
  endOnSignal,
  endProcess,
  failOnUnhandled,
  inspectorProblem,
  StartError,
  stopSignal,
} from "../start/process.ts";
import { runController } from "./run.ts";

const write = (text: string) => process.stderr.write(`${text.trimEnd()}\n`);

/** Exit codes: 0 done or asked to stop, 1 it could not, 2 the command line is invalid. */
async function runCommandLine(argv: readonly string[]): Promise<number> {
  const parsed = parseControllerArguments(argv, version);
  switch (parsed.kind) {
    case "help":
    case "version":
      process.stdout.write(parsed.text);
      return 0;
    case "usage-error":
      write(parsed.message);
      return 2;
    case "invalid":
      for (const error of parsed.errors) write(formatError(error));
      return 1;
  }
  const log = createLog(parsed.config.logging);
  for (const warning of parsed.warnings) log.warn(warning);
  failOnUnhandled(log);
  try {
    await runController(parsed.config, log, stopSignal(log));
    return 0;
  } catch (error) {
    if (error instanceof StartError) write(error.message);
    else log.error("fairlead-controller cannot continue; exiting", { reason: errorChainText(error) });
    return 1;
  }
}

const problem = inspectorProblem(process.execArgv, process.env["NODE_OPTIONS"]);
if (problem !== undefined) {
  write(problem);
  process.exit(1);
}
setUpEngine();
endOnSignal();
endProcess(await runCommandLine(process.argv.slice(2)));
