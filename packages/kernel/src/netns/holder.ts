import { readFile } from "node:fs/promises";
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
const START_MS = 300_000;

/**
 * Starts a process behind `unshare` that waits for the end of its standard input, which comes when this process closes
 * it or dies, `kill -9` included. Every program on the way execs the next, so its pid stays the one that is known here;
 * only `unshare --fork` waits for a child, which then is the one in the namespaces.
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
    throw new Error(stderr.trim() || (shortMessage ?? `${program} did not answer`));
  }
  letGo(child);
  const pid = await innermost(child.pid);
  return { pid, stop: () => stop(child, pid) };
}

async function innermost(pid: number): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  const [child] = children.split(" ").filter(Boolean);
  return child === undefined ? pid : Number(child);
}

/** What is used of execa's subprocess. */
interface Child {
  readonly nodeChildProcess: {
    readonly exitCode: number | null;
    readonly signalCode: string | null;
    ref(): void;
    unref(): void;
  };
  readonly stderr: Readable;
}

/** Who forgets to stop it can end all the same, and it ends with them. */
function letGo({ nodeChildProcess, stderr }: Child): void {
  nodeChildProcess.unref();
  stderr.destroy();
}

/** Behind `unshare --fork` it is the first process of its space: when it is gone, so are all others there. */
async function stop(child: Child & PromiseLike<unknown>, pid: number): Promise<void> {
  const { nodeChildProcess } = child;
  nodeChildProcess.ref();
  if (nodeChildProcess.exitCode === null && nodeChildProcess.signalCode === null) process.kill(pid, "SIGKILL");
  await child;
}

function firstPiece(stream: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve) => {
    stream.once("data", (piece) => resolve(String(piece)));
    stream.once("close", () => resolve(""));
    stream.once("error", () => resolve(""));
  });
}
