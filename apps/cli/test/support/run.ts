import type { Runner } from "@fairlead/kernel";
import { FakeRunner } from "@fairlead/kernel/fake";
import { runCommandLine } from "../../src/cli.ts";
import { plain } from "../../src/frame/style.ts";
import { askLoopback } from "../../src/node/loopback.ts";

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
    runner,
    signal,
    untilStopped: (work) => work(),
  });
  return { code, out, err };
}
