import type { Readable } from "node:stream";
import { execa } from "execa";
import { searchPath } from "../runner/search-path.ts";

/** The process whose life is the namespace's life. */
export interface Holder {
  readonly pid: number;
  stop(): Promise<void>;
}

const SCRIPT = "ip link set lo up && echo ready && exec cat >/dev/null";
/** It takes milliseconds, but for a slow guest where many are started at once. */
const START_MS = 60_000;

/**
 * Starts a process behind `unshare` that waits for the end of its standard input, which comes when this process closes it
 * or dies, `kill -9` included. Every program on the way execs the next, so its pid stays the one that is known here.
 */
export async function startHolder(unshare: readonly string[]): Promise<Holder> {
  const [program = "unshare", ...args] = unshare;
  const env = { LC_ALL: "C", PATH: searchPath() };
  const child = execa(program, [...args, "sh", "-c", SCRIPT], {
    env,
    stdin: "pipe",
    buffer: { stdout: false, stderr: true },
    reject: false,
  });
  const late = setTimeout(() => child.kill("SIGKILL"), START_MS);
  const answer = await firstPiece(child.stdout);
  clearTimeout(late);
  if (child.pid === undefined || answer !== "ready\n") {
    child.kill("SIGKILL");
    const { stderr, shortMessage } = await child;
    throw new Error(stderr.trim() || (shortMessage ?? `${program} gave no answer`));
  }
  letGo(child);
  return { pid: child.pid, stop: () => stop(child) };
}

/** What is used of execa's subprocess. */
interface Child {
  readonly nodeChildProcess: { ref(): void; unref(): void; kill(signal: "SIGKILL"): boolean };
  readonly stderr: Readable;
}

/** Who forgets to stop it can end all the same, and it ends with them. */
function letGo({ nodeChildProcess, stderr }: Child): void {
  nodeChildProcess.unref();
  stderr.destroy();
}

async function stop(child: Child & PromiseLike<unknown>): Promise<void> {
  child.nodeChildProcess.ref();
  child.nodeChildProcess.kill("SIGKILL");
  await child;
}

function firstPiece(stream: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve) => {
    stream.once("data", (piece) => resolve(String(piece)));
    stream.once("close", () => resolve(""));
    stream.once("error", () => resolve(""));
  });
}
