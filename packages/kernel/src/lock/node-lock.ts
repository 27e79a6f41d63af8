import { closeSync, ftruncateSync, readFileSync, writeSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { errorText } from "@fairlead/base";
import { lockByte } from "./byte-lock.ts";
import { describeHolder, holderText, type LockHolder, parseHolder } from "./holder.ts";
import { LOCK_FILE, openLockFile } from "./lock-file.ts";
import { lockPlace, ownNetwork } from "./lock-place.ts";
import { findLockProcess, isLockSeen } from "./lock-process.ts";

/** Where the lock is, and what is written into it. */
export interface NodeLockOptions {
  /** Version of the program that wants it, reported to later ones. */
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /**
   * Folders that agents of this node may share. The lock is taken in each that can be used; `lock/agent.lock` in it.
   */
  readonly folders: Iterable<string>;
  /** The agent's service proxy name: one agent of each name may be there. Default "". */
  readonly instance?: string;
  /** Where /proc is; tests have their own. */
  readonly proc?: string;
}

/** The lock of a node, or why there is none. */
export interface NodeLock {
  /** Whether this process has the lock in one folder at least. */
  readonly held: boolean;
  /** Why there may be another agent all the same; absent: there is no sign of one. */
  readonly doubt?: string;
  /** Gives the lock back; it also goes with the process. */
  release(): void;
}

/** Another process holds the lock of this node. */
export class NodeLockHeldError extends Error {
  override readonly name = "NodeLockHeldError";
  /** Absent where nothing is known of it. */
  readonly holder: LockHolder | undefined;

  constructor(holder: LockHolder | undefined, file: string) {
    super(`another agent runs on this node: ${holder ? describeHolder(holder) : "a process"} holds ${file}`);
    this.holder = holder;
  }
}

/**
 * Makes this process the one agent of its name in its network namespace: locks the byte that stands for both in files
 * which only its own user may open. The kernel lets go of the lock when the process ends, `kill -9` included.
 *
 * @returns not held, with a doubt, where no folder can be used: an agent without the lock is better than none
 * @throws NodeLockHeldError naming the process that has it
 */
export async function acquireNodeLock(options: NodeLockOptions): Promise<NodeLock> {
  const { version, startedAt, instance = "", proc = "/proc" } = options;
  const network = await ownNetwork(proc);
  const seen = await isLockSeen(instance, proc);
  if (seen) await refuseSeen(instance, network, proc);
  const text = holderText({ pid: process.pid, startedAt: new Date(startedAt).toISOString(), version }, network);
  const place = await lockPlace(instance, proc);
  const held: number[] = [];
  const problems: string[] = [];
  const release = () => {
    for (const descriptor of held.splice(0)) closeSync(descriptor);
  };
  for (const folder of new Set(options.folders)) {
    try {
      held.push(await lockIn(join(folder, "lock"), place, network, text));
    } catch (error) {
      if (!(error instanceof NodeLockHeldError)) problems.push(errorText(error));
      else {
        release();
        throw error;
      }
    }
  }
  if (held.length === 0) {
    return { held: false, doubt: `cannot take the node's lock: ${problems.join("; ")}`, release };
  }
  return { held: true, ...(seen && { doubt: "a process outside this PID namespace holds an agent's lock" }), release };
}

/** An agent in a container that shares no folder with this process, seen by its open files. */
async function refuseSeen(instance: string, network: number, proc: string): Promise<void> {
  const other = await findLockProcess(instance, proc);
  if (other === undefined) return;
  const text = await readFile(other.file, "utf8").catch(() => "");
  throw new NodeLockHeldError({ ...parseHolder(text, network), pid: other.pid }, "its lock");
}

/** @returns the descriptor that has the lock */
async function lockIn(folder: string, place: bigint, network: number, text: string): Promise<number> {
  const descriptor = openLockFile(folder);
  const file = join(folder, LOCK_FILE);
  try {
    if (!(await lockByte(descriptor, place))) {
      throw new NodeLockHeldError(parseHolder(readFileSync(descriptor, "utf8"), network), file);
    }
    ftruncateSync(descriptor);
    writeSync(descriptor, text, 0);
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}
