import { readdir, readFile, readlink, stat } from "node:fs/promises";
import { join } from "node:path";
import { isAgentsFile, LOCK_FILE } from "./lock-file.ts";

/** A process that holds the node's lock. */
export interface LockProcess {
  /** As this pid namespace numbers it. */
  readonly pid: number;
  /** The lock file as the process has it open: where it lies may be in another mount namespace. */
  readonly file: string;
}

/** The inode of this process's network namespace: the byte of a lock file that stands for it. */
export async function ownNetwork(root = "/proc"): Promise<number> {
  return (await stat(join(root, "self/ns/net"))).ino;
}

/**
 * Whether a process, in whatever container, holds a lock as an agent of this network namespace does. Any user can do so
 * with a file of theirs: it is no proof.
 *
 * @param root where /proc is
 */
export async function isLockSeen(root = "/proc"): Promise<boolean> {
  const byte = await ownNetwork(root);
  // `1: OFDLCK ADVISORY  WRITE -1 00:1b:1234 4026531840 4026531840`: these are listed to all pid namespaces.
  const locks = await readFile(join(root, "locks"), "utf8").catch(() => "");
  return locks.split("\n").some((line) => isLock(line, byte));
}

/**
 * The process that holds this node's lock, in whatever container. Needs the right to look into other people's
 * processes.
 *
 * @param root where /proc is
 * @returns undefined when nobody holds the lock, or the process cannot be seen from here
 */
export async function findLockProcess(root = "/proc"): Promise<LockProcess | undefined> {
  if (!(await isLockSeen(root))) return undefined;
  const byte = await ownNetwork(root);
  for (const pid of await readdir(root)) {
    const file = /^\d+$/.test(pid) ? await lockOf(join(root, pid), byte) : undefined;
    if (file !== undefined) return { pid: Number(pid), file };
  }
  return undefined;
}

/** The process that holds this node's lock; undefined as with `findLockProcess`. */
export async function nodeLockProcess(root = "/proc"): Promise<number | undefined> {
  return (await findLockProcess(root))?.pid;
}

function isLock(line: string, byte: number): boolean {
  return line.includes("OFDLCK") && line.endsWith(` ${byte} ${byte}`);
}

/** The lock file that a process holds. Processes come and go, and not all of them may be looked at. */
async function lockOf(folder: string, byte: number): Promise<string | undefined> {
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
