import { createServer, type Server } from "node:net";
import { askHolder, type LockHolder } from "./holder.ts";

export interface NodeLockOptions {
  /** Version of the program that wants it, told to those who come later. */
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** Name of the socket in the abstract namespace. Default `fairlead-proxy`. */
  readonly name?: string;
}

export interface NodeLock {
  release(): Promise<void>;
}

/** Another process holds the lock of this node. */
export class NodeLockHeldError extends Error {
  override readonly name = "NodeLockHeldError";
  /** Absent when the holder gave no answer. */
  readonly holder: LockHolder | undefined;

  constructor(holder: LockHolder | undefined) {
    super(`another agent works on this node: ${holder === undefined ? "it gives no answer" : describe(holder)}`);
    this.holder = holder;
  }
}

/**
 * Makes this process the one agent of its network namespace: an abstract unix socket (unix(7)), which belongs to the network
 * namespace, needs no folder and goes with the process, `kill -9` included. Who connects is told the holder's process.
 *
 * @throws NodeLockHeldError naming the process that has it
 */
export async function acquireNodeLock(options: NodeLockOptions): Promise<NodeLock> {
  const path = `\0${options.name ?? "fairlead-proxy"}`;
  const answer = JSON.stringify({
    pid: process.pid,
    startedAt: new Date(options.startedAt).toISOString(),
    version: options.version,
  });
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.end(`${answer}\n`);
  });
  // An agent that has nothing else to do may end.
  server.unref();
  try {
    await listen(server, path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EADDRINUSE")) throw error;
    throw new NodeLockHeldError(await askHolder(path));
  }
  return { release: () => new Promise((resolve) => server.close(() => resolve())) };
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

function describe(holder: LockHolder): string {
  const { pid, version, startedAt } = holder;
  return `process ${pid} (version ${version}, running since ${startedAt})`;
}
