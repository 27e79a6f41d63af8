import { readdir, readFile, readlink, stat } from "node:fs/promises";
import { join } from "node:path";
import { isAgentsFile, LOCK_FILE } from "./lock-file.ts";
import { lockPlace } from "./lock-place.ts";

/** A process that holds the node's lock. */
export interface LockProcess {
  /** As this pid namespace numbers it. */
  readonly pid: number;
  /** The lock file as the process has it open: where it lies may be in another mount namespace. */
  readonly file: string;
}

/**
 * Whether a process, in whatever container, holds a lock as an agent of this network namespace does. Any user can do so
 * with a file of theirs: it is no proof.
 *
 * @param instance the agent's service proxy name
 * @param root where /proc is
 */
export async function isLockSeen(instance: string, root = "/proc"): Promise<boolean> {
  const byte = await lockPlace(instance, root);
  // `1: OFDLCK ADVISORY  WRITE -1 00:1b:1234 4026531840 4026531840`: these are listed to all pid namespaces.
  const locks = await readFile(join(root, "locks"), "utf8").catch(() => "");
  return locks.split("\n").some((line) => isLock(line, byte));
}

/**
 * The process that holds this node's lock, in whatever container. Needs the right to look into other people's
 * processes.
 *
 * @param instance the agent's service proxy name
 * @param root where /proc is
 * @returns undefined when no process holds the lock, or the process cannot be seen from here
 */
export async function findLockProcess(instance: string, root = "/proc"): Promise<LockProcess | undefined> {
  if (!(await isLockSeen(instance, root))) return undefined;
  const byte = await lockPlace(instance, root);
  for (const pid of await readdir(root)) {
    const file = /^\d+$/.test(pid) ? await lockOf(join(root, pid), byte) : undefined;
    if (file !== undefined) return { pid: Number(pid), file };
  }
  return undefined;
}

/** The process that holds this node's lock; undefined as with `findLockProcess`. Default: the agent without a name. */
export async function nodeLockProcess(instance = ""): Promise<number | undefined> {
  return (await findLockProcess(instance))?.pid;
}

function isLock(line: string, byte: bigint): boolean {
  return line.includes("OFDLCK") && line.endsWith(` ${byte} ${byte}`);
}

/** The lock file that a process holds. Processes come and go, and not all of them may be looked at. */
async function lockOf(folder: string, byte: bigint): Promise<string | undefined> {
  for (const descriptor of await readdir(join(folder, "fd")).catch(() => [])) {
    const file = join(folder, "fd", descriptor);
    if (!(await readlink(file).catch(() => "")).endsWith(`/${LOCK_FILE}`)) continue;
    const found = await stat(file).catch(() => undefined);
    if (found === undefined || !isAgentsFile(found)) continue;
    const info = await readFile(join(folder, "fdinfo", descriptor), "utf8").catch(() => "");
    if (info.split("\n").some((line) => isLock(line, byte))) return file;
  }
  return undefined;
}
