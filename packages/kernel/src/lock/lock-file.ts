import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  type Stats,
} from "node:fs";
import { dirname, join } from "node:path";
import { errorCode } from "@fairlead/base";

/** Name of the lock in its folder. */
export const LOCK_FILE = "agent.lock";

/**
 * Opens the lock of a folder, and makes both where they are not there: for their owner only, as a user who may open the
 * file may lock it.
 *
 * @returns its descriptor
 * @throws Error when the folder cannot be made, or belongs to another program, or the lock is no regular file
 */
export function openLockFile(folder: string): number {
  makeFolder(folder);
  const found = lstatSync(folder);
  if (!found.isDirectory()) throw new Error(`${folder}: is not a folder`);
  if (found.uid !== process.geteuid?.()) throw new Error(`${folder}: belongs to user ${found.uid}`);
  if (isForOthers(found)) chmodSync(folder, 0o700);
  const { O_RDWR, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants;
  const path = join(folder, LOCK_FILE);
  const descriptor = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
  try {
    // Who holds a lock is read from its file: from a FIFO that would take for ever.
    if (!fstatSync(descriptor).isFile()) throw new Error(`${path}: is not a regular file`);
    fchmodSync(descriptor, 0o600);
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

/**
 * With those above it. Not by `recursive`, with which Node 24 never returns where the parent takes no folders (/proc).
 */
function makeFolder(folder: string): void {
  const make = () => {
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      if (errorCode(error) !== "EEXIST") throw error;
    }
  };
  try {
    make();
  } catch (error) {
    if (errorCode(error) !== "ENOENT" || dirname(folder) === folder) throw error;
    makeFolder(dirname(folder));
    make();
  }
}

/** Whether only root and this user can have opened a lock file: otherwise its lock means nothing. */
export function isAgentsFile(found: Stats): boolean {
  return found.isFile() && (found.uid === 0 || found.uid === process.geteuid?.()) && !isForOthers(found);
}

function isForOthers({ mode }: Stats): boolean {
  return (mode & 0o077) !== 0;
}
