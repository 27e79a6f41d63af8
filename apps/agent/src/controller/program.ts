// The process fairlead-controller: one command line, and the controller until a signal ends it.
import { errorChainText } from "@fairlead/base";
import { parseControllerArguments } from "@fairlead/config";
import { version } from "../about/version.ts";
import { answer, PROCESS_IO } from "../cli.ts";
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

/** Exit codes: 0 done or asked to stop, 1 it could not, 2 the command line is invalid. */
async function runCommandLine(argv: readonly string[]): Promise<number> {
  const parsed = parseControllerArguments(argv, version);
  if (parsed.kind !== "run") return answer(parsed, PROCESS_IO);
  const log = createLog(parsed.config.logging);
  for (const warning of parsed.warnings) log.warn(warning);
  failOnUnhandled(log);
  try {
    await runController(parsed.config, log, stopSignal(log));
    return 0;
  } catch (error) {
    if (error instanceof StartError) PROCESS_IO.err(`${error.message}\n`);
    else log.error("fairlead-controller cannot continue; exiting", { reason: errorChainText(error) });
    return 1;
  }
}

const problem = inspectorProblem(process.execArgv, process.env["NODE_OPTIONS"]);
if (problem !== undefined) {
  PROCESS_IO.err(`${problem}\n`);
  process.exit(1);
}
setUpEngine();
endOnSignal();
endProcess(await runCommandLine(process.argv.slice(2)));
