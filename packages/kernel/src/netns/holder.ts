import { execa } from "execa";
import { searchPath } from "../runner/search-path.ts";

/** The process whose life is the namespace's life. */
export interface Holder {
  readonly pid: number;
  stop(): Promise<void>;
}

const SCRIPT = "ip link set lo up && echo ready && exec cat >/dev/null";
const START_MS = 10_000;

/**
 * Starts a process behind `unshare` that waits for the end of its standard input, which comes when this process closes it
 * or dies, `kill -9` included. Every program on the way execs the next, so its pid stays the one that is known here.
 */
export async function startHolder(unshare: readonly string[]): Promise<Holder> {
  const [program = "unshare", ...args] = unshare;
  const child = execa(program, [...args, "sh", "-c", SCRIPT], {
    env: { LC_ALL: "C", PATH: searchPath() },
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
  return { pid: child.pid, stop: () => stop(child) };
}

async function stop(child: { kill(signal: "SIGKILL"): boolean } & PromiseLike<unknown>): Promise<void> {
  child.kill("SIGKILL");
  await child;
}

function firstPiece(stream: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve) => {
    stream.once("data", (piece) => resolve(String(piece)));
    stream.once("close", () => resolve(""));
    stream.once("error", () => resolve(""));
  });
}
