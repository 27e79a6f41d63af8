/** One agent of a name for each node: a lock that the kernel ends with its holder, and the words about that one. */

import { createHash } from "node:crypto";
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  type Stats,
  writeSync,
} from "node:fs";
import { readdir, readFile, readlink, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { errorCode, errorText } from "@fairlead/base";
import { loadKoffi, NetlinkError } from "./netlink/listening.ts";

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

/** The process that holds a node's lock. */
export interface LockHolder {
  /** Its process id. */
  readonly pid: number;
  /** RFC 3339; absent like `version` where it cannot be read. */
  readonly startedAt?: string;
  /** Of the program, as it gave it. */
  readonly version?: string;
}

/**
 * The byte of a lock file that stands for an agent of this network namespace: the namespace's inode, which has 32 bits,
 * for the one without a name, and above that a hash of 31 bits for those with one.
 */
export async function lockPlace(instance: string, root = "/proc"): Promise<bigint> {
  const network = BigInt(await ownNetwork(root));
  if (instance === "") return network;
  const hash = createHash("sha256").update(instance).digest().readUInt32BE() >>> 1;
  return network + (BigInt(hash) << 32n);
}

/** The process that holds this node's lock; undefined as with `findLockProcess`. Default: the agent without a name. */
export async function nodeLockProcess(instance = ""): Promise<number | undefined> {
  return (await findLockProcess(instance))?.pid;
}

type Fcntl = (descriptor: number, lock: object) => { readonly failed: boolean; readonly errno: number };

let opened: Promise<Fcntl> | undefined;

const WRITE = 1;
const FROM_START = 0;

/**
 * Locks one byte of a file, which need not be there, for the open file description (fcntl_locking(2), "Open file
 * description locks"): the kernel lets go of it when the last descriptor is closed, `kill -9` included. Children do not
 * get it: Node opens all files with O_CLOEXEC.
 *
 * @param descriptor open for writing
 * @returns false: another program has it
 * @throws NativeCodeError when there is no compiled code for this machine, or the file system has no such locks
 */
export async function lockByte(descriptor: number, at: number | bigint): Promise<boolean> {
  opened ??= openFcntl();
  const call = await opened;
  const { failed, errno } = call(descriptor, { l_type: WRITE, l_whence: FROM_START, l_start: at, l_len: 1, l_pid: 0 });
  if (!failed) return true;
  const error = new NetlinkError("fcntl(F_OFD_SETLK)", errno);
  if (error.code === "EAGAIN" || error.code === "EACCES") return false;
  throw error;
}

/** An agent in a container that shares no folder with this process, seen by its open files. */
async function refuseSeen(instance: string, network: number, proc: string): Promise<void> {
  const other = await findLockProcess(instance, proc);
  if (other === undefined) return;
  const text = await readFile(other.file, "utf8").catch(() => "");
  throw new NodeLockHeldError({ ...parseHolder(text, network), pid: other.pid }, "its lock");
}

const LOCK_FILE = "agent.lock";

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

/** What a lock file says: the agent that locked it last, for the network namespace with this inode. */
function holderText(holder: LockHolder, network: number): string {
  return `${JSON.stringify({ network, ...holder })}\n`;
}

/** Undefined when the text is no agent's, or of another network namespace's. */
function parseHolder(text: string, network: number): LockHolder | undefined {
  try {
    return holderOf(JSON.parse(text), network);
  } catch {
    return undefined;
  }
}

/** `process 12 (version 1.2.3, running since 2030-01-01T00:00:00.000Z)` */
function describeHolder({ pid, version, startedAt }: LockHolder): string {
  const known =
    version === undefined || startedAt === undefined ? "" : ` (version ${version}, running since ${startedAt})`;
  return `process ${pid}${known}`;
}

function holderOf(value: unknown, of: number): LockHolder | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { network, pid, startedAt, version } = value as Partial<Record<"network" | keyof LockHolder, unknown>>;
  if (network !== of || typeof pid !== "number") return undefined;
  if (typeof startedAt !== "string" || typeof version !== "string") return undefined;
  return { pid, startedAt, version };
}

/**
 * Opens the lock of a folder, and makes both where they are not there: for their owner only, as a user who may open the
 * file may lock it.
 *
 * @returns its descriptor
 * @throws Error when the folder cannot be made, or belongs to another program, or the lock is no regular file
 */
function openLockFile(folder: string): number {
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
function isAgentsFile(found: Stats): boolean {
  return found.isFile() && (found.uid === 0 || found.uid === process.geteuid?.()) && !isForOthers(found);
}

function isForOthers({ mode }: Stats): boolean {
  return (mode & 0o077) !== 0;
}

/** The inode of this process's network namespace. */
async function ownNetwork(root = "/proc"): Promise<number> {
  return (await stat(join(root, "self/ns/net"))).ino;
}

interface LockProcess {
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
async function isLockSeen(instance: string, root = "/proc"): Promise<boolean> {
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
async function findLockProcess(instance: string, root = "/proc"): Promise<LockProcess | undefined> {
  if (!(await isLockSeen(instance, root))) return undefined;
  const byte = await lockPlace(instance, root);
  for (const pid of await readdir(root)) {
    const file = /^\d+$/.test(pid) ? await lockOf(join(root, pid), byte) : undefined;
    if (file !== undefined) return { pid: Number(pid), file };
  }
  return undefined;
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

/** fcntl.h: F_OFD_SETLK, F_WRLCK, SEEK_SET. */
const SET_LOCK = 37;

async function openFcntl(): Promise<Fcntl> {
  const koffi = await loadKoffi();
  const lock = koffi.struct({ l_type: "short", l_whence: "short", l_start: "int64", l_len: "int64", l_pid: "int" });
  const fcntl = koffi.load(null).func("fcntl", "int", ["int", "int", "..."]);
  return (descriptor, value) => {
    const failed = fcntl(descriptor, SET_LOCK, koffi.pointer(lock), value) !== 0;
    return { failed, errno: koffi.errno() };
  };
}
