import { readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";

/** A line of /proc/net/unix of a socket that listens (flag SO_ACCEPTCON): `… 00010000 0001 01 INODE @name`. */
const LISTENING = /^\S+ \S+ \S+ 00010000 \S+ \S+ +(\d+) @(.+)$/gm;

/**
 * The process that holds a node's lock, as this pid namespace numbers it: the one that has the lock's socket open. Needs
 * the right to look into other people's processes.
 *
 * @param root where /proc is
 * @returns undefined when nobody holds the lock, or the process cannot be seen from here
 */
export async function nodeLockProcess(name = "fairlead-proxy", root = "/proc"): Promise<number | undefined> {
  const sockets = await readFile(join(root, "net/unix"), "utf8");
  const inode = [...sockets.matchAll(LISTENING)].find(([, , socket]) => socket === name)?.[1];
  if (inode === undefined) return undefined;
  for (const pid of await readdir(root)) {
    if (/^\d+$/.test(pid) && (await hasSocket(join(root, pid, "fd"), inode))) return Number(pid);
  }
  return undefined;
}

/** Processes come and go, and not all of them may be looked at. */
async function hasSocket(folder: string, inode: string): Promise<boolean> {
  const files = await readdir(folder).catch(() => []);
  for (const file of files) {
    if ((await readlink(join(folder, file)).catch(() => "")) === `socket:[${inode}]`) return true;
  }
  return false;
}
