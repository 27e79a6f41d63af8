import { basename } from "node:path";
import { errorText } from "@fairlead/base";
import { runCommandLine } from "./cli.ts";
import { COMMANDS } from "./commands/table.ts";
import { COMPLETER, completionsOf, kubectlCompletion } from "./frame/completion.ts";

import { createProgress, Ending, styleFor } from "./frame/terminal.ts";

import { askLoopback, CONNECTIONS, COREUTILS, FULL_SYNC, lazyRunner, STATE } from "./node/host.ts";

const ending = new Ending(process);
const runner = lazyRunner();
const [, file = "", ...argv] = process.argv;
const code = await answer();
// What is still on its way to a pipe gets there first; open sockets keep no process.
process.stdout.write("", () => process.exit(ending.codeOf(code)));

function answer(): Promise<number> {
  if (basename(file) === COMPLETER) return complete();
  if (argv[0] === CONNECTIONS) return connections();
  if (argv[0] === COREUTILS) return coreutils();
  if (argv[0] === FULL_SYNC) return fullSync(argv[1] ?? "");
  return argv[0] === STATE ? state() : command();
}

async function fullSync(instance: string): Promise<number> {
  const { notifyOwnAgent } = await import("./node/agent-endpoint.ts");
  return answered(() => notifyOwnAgent(instance));
}

async function state(): Promise<number> {
  const { stateText } = await import("./node/read-state.ts");
  return answered(async () => {
    process.stdout.write(await stateText(argv.slice(1), runner));
  });
}

async function coreutils(): Promise<number> {
  const { printedHere } = await import("./node/coreutils.ts");
  return answered(async () => {
    const [, program = "", ...args] = argv;
    process.stdout.write((await printedHere([program, ...args])).stdout);
  });
}

async function answered(work: () => Promise<void>): Promise<number> {
  try {
    await work();
    return 0;
  } catch (error) {
    process.stderr.write(`${errorText(error)}\n`);
    return 3;
  }
}

async function connections(): Promise<number> {
  const { printConnections } = await import("./node/connections.ts");
  const work = () => printConnections(argv, runner, ending.signal, (text) => process.stdout.write(text));
  await ending.untilStopped(work);
  return 0;
}

async function complete(): Promise<number> {
  process.stdout.write(kubectlCompletion(completionsOf(COMMANDS), argv));
  return 0;
}

function command(): Promise<number> {
  return runCommandLine(argv, {
    program: basename(file).startsWith("kubectl-") ? "kubectl fairlead" : "fairlead",
    env: process.env,
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
    warn: (line) => process.stderr.write(`${line}\n`),
    style: styleFor(process.stdout.isTTY === true, process.env),
    readStandardInput: async () => (await import("node:stream/consumers")).buffer(process.stdin),
    progress: createProgress(process.stderr),
    askHere: askLoopback,
    stateHere: async (parts) => (await import("./node/read-state.ts")).readState(runner, "netlink", parts),
    runner,
    signal: ending.signal,
    untilStopped: ending.untilStopped,
  });
}
