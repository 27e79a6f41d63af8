import { PROCESS_IO, runCommandLine } from "./cli.ts";
import { FLOWTABLE_TEST } from "./real-kernel.ts";
import { setUpEngine } from "./start/engine.ts";
import { endOnSignal, endProcess, inspectorProblem } from "./start/process.ts";

// The process. start/action.ts chooses what it runs, start/node.ts prepares the node, run/run-agent.ts runs the agent;
// run/agent.ts composes the agent: planner, syncer (one sync) and sync loop (when syncs run).

const problem = inspectorProblem(process.execArgv, process.env["NODE_OPTIONS"]);
if (problem !== undefined) {
  process.stderr.write(`${problem}\n`);
  process.exit(1);
}
if (process.argv[2] === FLOWTABLE_TEST) {
  const { flowtableTestProcess } = await import("./real-kernel.ts");
  process.stdout.write(await flowtableTestProcess());
  process.exit(0);
}
setUpEngine();
endOnSignal();
const code = await runCommandLine(
  process.argv.slice(2),
  PROCESS_IO,
  // --version and wrong flags are answered without it.
  { load: async () => (await import("./start/action.ts")).runAction },
);
// Watchers and processes that are still there must not keep it.
endProcess(code);
