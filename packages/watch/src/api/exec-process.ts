// biome-ignore lint/style/noRestrictedImports: a kubeconfig's own program; the runner is for the kernel's tools
import { type ChildProcess, spawn } from "node:child_process";
import type { Clock } from "@fairlead/base";
import { quoted } from "./redact.ts";

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Milliseconds after which it is said that the program still runs, and after which it is ended. */
export const SLOW_AFTER = 10_000;
export const ENDED_AFTER = 60_000;
/** Bytes of an ExecCredential, a certificate chain included. */
const MAX_OUTPUT = 2 ** 20;
const MAX_COMPLAINT = 2 ** 12;

/**
 * Runs a program and gives what it writes. It gets no input: one that asks for a password would wait for ever.
 *
 * @param onSlow reported once when it has not ended for `slowAfter`
 * @throws Error it can't be started, ends with another code than 0, writes too much, or has not ended after
 * `endedAfter`; with what it wrote to standard error
 */
export function outputOf(program: Program, clock: Clock, onSlow: () => void): Promise<string> {
  const { command, args, env } = program;
  return new Promise((resolve, reject) => {
    // A group of its own, so that what it has started ends with it.
    const child = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    const output = beginningOf(child.stdout, MAX_OUTPUT);
    const complaint = beginningOf(child.stderr, MAX_COMPLAINT);
    const finish = (problem: string | undefined) => {
      for (const cancel of timers) cancel();
      const said = complaint().toString("utf8");
      if (problem === undefined) resolve(output().toString("utf8"));
      else reject(new Error(`${command} ${problem}${said.trim() === "" ? "" : ` and printed ${quoted(said)}`}`));
    };
    const end = (problem: string) => {
      endGroup(child);
      finish(problem);
    };
    const timers = [
      clock.after(SLOW_AFTER, onSlow),
      clock.after(ENDED_AFTER, () => end(`did not exit within ${ENDED_AFTER / 1000} s and was killed`)),
    ];
    child.on("error", (error) => finish(`failed to start: ${error.message}`));
    child.stdout.on(
      "data",
      () => output().length > MAX_OUTPUT && end(`wrote more than ${MAX_OUTPUT} bytes and was killed`),
    );
    child.on("close", (code, signal) =>
      finish(code === 0 ? undefined : signal === null ? `exited with code ${code}` : `was killed by ${signal}`),
    );
  });
}

function endGroup(child: ChildProcess): void {
  child.stdout?.destroy();
  child.stderr?.destroy();
  try {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has ended by itself just now.
  }
}

/** @returns what has come so far, not more than a chunk beyond `most` bytes */
function beginningOf(stream: NodeJS.ReadableStream, most: number): () => Buffer {
  const chunks: Buffer[] = [];
  let size = 0;
  stream.on("data", (chunk: Buffer) => {
    if (size <= most) chunks.push(chunk);
    size += chunk.length;
  });
  stream.on("error", () => {});
  return () => Buffer.concat(chunks);
}
