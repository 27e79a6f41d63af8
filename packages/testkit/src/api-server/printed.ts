import { PassThrough, Readable } from "node:stream";
import type { PodProgram } from "./pod-streams.ts";

/** A program that prints this and ends; what it reads is given to `onInput` first, where that is there. */
export function printed(text: string, { exitCode = 0, stderr = "", onInput }: PrintedOptions = {}): PodProgram {
  const stdin = new PassThrough();
  async function* output(): AsyncGenerator<string, void, void> {
    const input = onInput === undefined ? "" : Buffer.concat(await stdin.toArray()).toString();
    yield onInput?.(input) ?? text;
  }
  return {
    stdin,
    stdout: Readable.from(output()),
    stderr: Readable.from([stderr]),
    exitCode: Promise.resolve(exitCode),
    kill: () => {},
  };
}

interface PrintedOptions {
  readonly exitCode?: number;
  readonly stderr?: string;
  /** What is printed in the place of the text, by what came in until the end of standard input. */
  readonly onInput?: (input: string) => string;
}
