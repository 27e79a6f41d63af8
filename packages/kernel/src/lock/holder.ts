import { createConnection } from "node:net";

/** The process that holds a node's lock, as it says itself. */
export interface LockHolder {
  /** In its own pid namespace. */
  readonly pid: number;
  /** RFC 3339. */
  readonly startedAt: string;
  readonly version: string;
}

const PATIENCE_MS = 1_000;
const LONGEST = 4096;

/** What the holder answers; undefined when it is no agent of ours, or stopped. */
export async function askHolder(path: string): Promise<LockHolder | undefined> {
  const answer = await readLine(path);
  try {
    return holderOf(JSON.parse(answer));
  } catch {
    return undefined;
  }
}

function holderOf(value: unknown): LockHolder | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { pid, startedAt, version } = value as Partial<Record<keyof LockHolder, unknown>>;
  if (typeof pid !== "number" || typeof startedAt !== "string" || typeof version !== "string") return undefined;
  return { pid, startedAt, version };
}

function readLine(path: string): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = createConnection(path);
    const done = () => {
      socket.destroy();
      resolve(text);
    };
    socket.setTimeout(PATIENCE_MS, done);
    socket.setEncoding("utf8");
    socket.on("data", (piece: string) => {
      text += piece;
      if (text.includes("\n") || text.length > LONGEST) done();
    });
    socket.on("error", done);
    socket.on("close", done);
  });
}
