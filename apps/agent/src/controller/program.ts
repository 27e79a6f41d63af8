// The process fairlead-controller: one command line, and the controller until a signal ends it.
import { type ControllerConfig, parseControllerArguments } from "@fairlead/config";
import { version } from "../about/version.ts";
import { answer, PROCESS_IO } from "../cli.ts";
import { setUpEngine } from "../start/engine.ts";
import { endOnSignal, endProcess, failOnUnhandled, inspectorProblem, logged, stopSignal } from "../start/process.ts";
import { runController } from "./run.ts";

const serve = logged(async (config: ControllerConfig, log) => {
  failOnUnhandled(log);
  await runController(config, log, stopSignal(log));
  return 0;
}, "fairlead-controller");

/** Exit codes: 0 done or asked to stop, 1 it could not, 2 the command line is invalid. */
async function runCommandLine(argv: readonly string[]): Promise<number> {
  const parsed = parseControllerArguments(argv, version);
  if (parsed.kind !== "run") return answer(parsed, PROCESS_IO);
  return serve(parsed.config, parsed.warnings, PROCESS_IO);
}

const problem = inspectorProblem(process.execArgv, process.env["NODE_OPTIONS"]);
if (problem !== undefined) {
  PROCESS_IO.err(`${problem}\n`);
  process.exit(1);
}
setUpEngine();
endOnSignal();
endProcess(await runCommandLine(process.argv.slice(2)));
