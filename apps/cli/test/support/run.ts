import { runCommandLine } from "../../src/cli.ts";
import { plain } from "../../src/output/style.ts";

export interface Run {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs a command line in this process. */
export async function fairlead(argv: readonly string[], { stdin = "", env = {} }: RunOptions = {}): Promise<Run> {
  let [out, err] = ["", ""];
  const code = await runCommandLine(argv, {
    program: "fairlead",
    env,
    out: (text) => {
      out += text;
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
    signal: new AbortController().signal,
  });
  return { code, out, err };
}
