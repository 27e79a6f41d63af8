import { Followed } from "@fairlead/base/testing";
import { type Argv, CommandError, type Runner } from "@fairlead/kernel";
import { FakeRunner } from "@fairlead/kernel/fake";
import { runCommandLine } from "../../src/cli.ts";
import type { Context } from "../../src/frame/context.ts";
import { plain } from "../../src/frame/terminal.ts";
import { askLoopback } from "../../src/node/host.ts";
import { readState } from "../../src/node/read-state.ts";

export interface Run {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Interrupts the command. */
  readonly signal?: AbortSignal;
  /** Sees standard output as it comes. */
  readonly onOut?: (text: string) => void;
  /** Where programs are started; default: nowhere, none is installed. */
  readonly runner?: Runner;
  /** Default: what the runner's programs print. */
  readonly stateHere?: Context["stateHere"];
}

const STANDARD_PORTS = new Set([10_249, 10_256, 10_349, 10_356]);
const refused = new Error("connect ECONNREFUSED");

/** Runs a command line in this process. */
export async function fairlead(
  argv: readonly string[],
  {
    stdin = "",
    env = {},
    signal = new AbortController().signal,
    onOut = () => {},
    runner = new FakeRunner(),
    // What this machine's netlink would say has nothing to do with a test.
    stateHere = (parts) => readState(runner, "programs", parts),
  }: RunOptions = {},
): Promise<Run> {
  let [out, err] = ["", ""];
  const code = await runCommandLine(argv, {
    program: "fairlead",
    env,
    out: (text) => {
      out += text;
      onOut(text);
    },
    err: (text) => {
      err += text;
    },
    warn: (line) => {
      err += `${line}\n`;
    },
    style: plain,
    readStandardInput: async () => Buffer.from(stdin),
    progress: (_what, work) => work(),
    // What this machine runs has nothing to do with a test.
    askHere: (port, path) => (STANDARD_PORTS.has(port) ? Promise.reject(refused) : askLoopback(port, path)),
    stateHere,
    runner,
    signal,
    untilStopped: (work) => work(),
  });
  return { code, out, err };
}

/** A command that runs until it is closed. */
export interface RunningCommand extends AsyncDisposable {
  /** Waits until the output matches. */
  prints(pattern: RegExp): Promise<RegExpExecArray>;
  /** Interrupts it. */
  close(): Promise<Run>;
}

/** Starts a command line in this process. */
export function started(
  signal: AbortSignal,
  argv: readonly string[],
  options: Omit<RunOptions, "signal" | "onOut"> = {},
): RunningCommand {
  const stop = new AbortController();
  const output = new Followed<string>(signal);
  const ended = fairlead(argv, { ...options, signal: stop.signal, onOut: (piece) => output.add(piece) });
  ended.then(
    ({ code, err }) => output.end(new Error(`exit code ${code}: ${err}`)),
    (error: unknown) => output.end(error),
  );
  const close = () => {
    stop.abort();
    return ended;
  };
  return {
    prints: (pattern) => output.until((pieces) => pattern.exec(pieces.join("")) ?? undefined, String(pattern)),
    close,
    [Symbol.asyncDispose]: async () => {
      await close().catch(() => {});
    },
  };
}

/**
 * A host whose programs print this, by the whole command or its first word; others are not installed. Notes what is
 * started.
 */
export function programs(printed: Readonly<Record<string, string>>): Runner & { readonly started: string[] } {
  const started: string[] = [];
  const run = async (argv: Argv) => {
    started.push(argv.join(" "));
    const stdout = printed[argv.join(" ")] ?? printed[argv[0]];
    if (stdout === undefined) throw new CommandError({ argv, reason: "not-found" });
    return { stdout, stderr: "" };
  };
  return {
    started,
    run,
    async *stream(argv) {
      yield (await run(argv)).stdout;
    },
  };
}
