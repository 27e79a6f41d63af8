/** Network namespaces for tests, each held by a process, of a plain user too. */

import { closeSync, openSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { Readable } from "node:stream";
import { errorText } from "@fairlead/base";
import { execa } from "execa";
import { loadKoffi, type OpenListening } from "../netlink/listening.ts";
import { type OpenNetlink, type OpenTransactions, socketsIn } from "../netlink/socket.ts";
import { searchPath } from "../process-runner.ts";

/**
 * A network namespace that lives as long as one process: no name in /run/netns, nothing left behind when the process
 * that made it dies in whatever way. Its loopback interface is up and it leads nowhere.
 */
export interface NetworkNamespace {
  /** The process that holds it, for `ip link set … netns PID` and /proc/PID. */
  readonly pid: number;
  /** Leads there: a descriptor of the holder, which a process that gets its number later does not have. */
  readonly file: string;
  /** root: made with the caller's own rights. user: in a user namespace of its own, where the caller is root. */
  readonly as: "root" | "user";
  /** Put before an argv, it runs inside: `["nsenter", …, "--"]`. */
  readonly argvPrefix: readonly string[];
  /** For processes inside: the legacy tools lock this namespace only, not the whole machine. */
  readonly env: Readonly<Record<string, string>>;
  /** Ends the holder; the namespace goes with the last process in it. May be called twice. */
  dispose(): Promise<void>;
  /** As `dispose`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** How a namespace is made. */
export interface NamespaceOptions {
  /**
   * With mounts and processes of its own, which end with it, whatever they have become (root only). Default false.
   */
  readonly whole?: boolean;
  /** In a user namespace of its own, also for root: without rights over the machine. Default: only for a plain user. */
  readonly user?: boolean;
  /** Makes it next to this one, so that interfaces can move between the two; only a plain user needs to say. */
  readonly alongside?: NetworkNamespace;
}

/** Whether this machine lets this user make namespaces, or why not. */
export type NamespaceSupport =
  | { readonly ok: true; readonly as: "root" | "user" }
  | { readonly ok: false; readonly reason: string };

/**
 * Makes a network namespace: as root with `unshare -n`, else inside a new user namespace (`unshare -Ur`): the
 * files of a network namespace below /proc/net belong to the root that its user namespace has when it is made, and one
 * that is made with it has none yet.
 *
 * @throws Error that says why this machine allows neither
 */
export async function createNamespace(options: NamespaceOptions = {}): Promise<NetworkNamespace> {
  const failures: string[] = [];
  for (const command of options.whole ? [WHOLE] : unshareCommands(options)) {
    try {
      return describe(command, await startHolder(command));
    } catch (error) {
      failures.push(errorText(error));
    }
  }
  // What unshare says of a user namespace ("write failed /proc/self/uid_map") does not say why.
  const hint = process.getuid?.() === 0 ? undefined : userNamespaceHint();
  throw new Error(
    `cannot create a network namespace: ${[...new Set([...failures, ...(hint === undefined ? [] : [hint])])].join("; ")}`,
  );
}

/** Whether `createNamespace` works here, and why not. Makes one to find out. */
export async function namespaceSupport(): Promise<NamespaceSupport> {
  try {
    const namespace = await createNamespace();
    await namespace.dispose();
    return { ok: true, as: namespace.as };
  } catch (error) {
    return { ok: false, reason: errorText(error) };
  }
}

/** Netlink sockets in a network namespace, for the `open` and `listen` of clients. */
export interface NetlinkSockets {
  /** For devices and their addresses. */
  readonly route: OpenNetlink;
  /** For conntrack and ipsets. */
  readonly netfilter: OpenNetlink;
  /** For virtual servers. */
  readonly generic: OpenNetlink;
  /** For transactions of nf_tables. */
  readonly transactions: OpenTransactions;
  /** For the reports of conntrack and nf_tables. */
  readonly listening: OpenListening;
  /** For the reports of devices and their addresses. */
  readonly routeListening: OpenListening;
}

/** How netlink is reached in a namespace, by a process with the rights to enter it: root, where root has made it. */
export function netlinkIn({ file }: Pick<NetworkNamespace, "file">): NetlinkSockets {
  return socketsIn(file);
}

/**
 * Has this process be in a namespace while it does something: its main thread, and so the sockets that it opens and the
 * processes that it starts. Only root can; a plain user enters one by `argvPrefix`.
 */
export async function inside<T>({ file }: Pick<NetworkNamespace, "file">, work: () => Promise<T>): Promise<T> {
  const koffi = await loadKoffi();
  const setns = koffi.load(null).func("int setns(int, int)");
  const enter = (descriptor: number) => {
    if (setns(descriptor, 0) !== 0)
      throw new Error(`cannot enter or leave a network namespace: errno ${koffi.errno()}`);
  };
  const [own, other] = [openSync("/proc/thread-self/ns/net", "r"), openSync(file, "r")];
  try {
    enter(other);
    return await work().finally(() => enter(own));
  } finally {
    for (const descriptor of [own, other]) closeSync(descriptor);
  }
}

/**
 * Settings that keep plain users from having user namespaces: the file below /proc/sys, its forbidding value, what to
 * say.
 */
const SETTINGS = [
  [
    "kernel/apparmor_restrict_unprivileged_userns",
    "1",
    "AppArmor keeps plain users from user namespaces (Ubuntu 23.10 and newer)",
    "0",
  ],
  ["kernel/unprivileged_userns_clone", "0", "the kernel keeps plain users from user namespaces", "1"],
  ["user/max_user_namespaces", "0", "no user namespaces are allowed", "15000"],
] as const;

/**
 * Why a plain user cannot have a user namespace here, and what helps; undefined where nothing forbids it.
 *
 * @param read text of a file below /proc/sys, undefined where there is none
 */
export function userNamespaceHint(read: (name: string) => string | undefined = readSetting): string | undefined {
  for (const [name, forbidding, why, allowing] of SETTINGS) {
    if (read(name)?.trim() !== forbidding) continue;
    const setting = name.replaceAll("/", ".");
    return `${why}: run this as root, or allow them with "sudo sysctl -w ${setting}=${allowing}"`;
  }
  return undefined;
}

/** What a holder may be in, by nsenter's options: the file below /proc/PID/ns, and its descriptor of that file. */
const ENTERED = {
  net: ["net", 9],
  user: ["user", 8],
  mount: ["mnt", 7],
  pid: ["pid", 6],
} as const;

type Entered = keyof typeof ENTERED;

interface UnshareCommand {
  readonly as: "root" | "user";
  readonly unshare: readonly string[];
  readonly enters: readonly Entered[];
}

/** The first process in it dies with `unshare`, and the kernel takes all others along. */
const WHOLE: UnshareCommand = {
  as: "root",
  unshare: ["unshare", "-n", "-m", "-p", "--fork", "--kill-child", "--mount-proc", "--"],
  enters: ["net", "mount", "pid"],
};

function unshareCommands({
  alongside,
  user: asUser = process.getuid?.() !== 0,
}: NamespaceOptions): readonly UnshareCommand[] {
  const root: UnshareCommand = { as: "root", unshare: ["unshare", "-n", "--"], enters: ["net"] };
  const user: UnshareCommand = {
    as: "user",
    unshare: ["unshare", "-Ur", "--", ...root.unshare],
    enters: ["user", "net"],
  };
  if (alongside?.as === "user") return [{ ...user, unshare: [...nsenter(alongside.pid, ["user"]), ...root.unshare] }];
  if (alongside?.as === "root") return [root];
  return asUser ? [user] : [root, user];
}

/** The process whose life is the namespace's life. */
interface Holder {
  readonly pid: number;
  stop(): Promise<void>;
}

function describe({ as, enters }: UnshareCommand, { pid, stop }: Holder): NetworkNamespace {
  const file = heldFile(pid, "net");
  return {
    pid,
    file,
    as,
    argvPrefix: nsenter(pid, enters),
    // flock() works on the namespace's own inode: a lock for each namespace without a file to leave behind.
    env: { XTABLES_LOCKFILE: file },
    dispose: stop,
    [Symbol.asyncDispose]: stop,
  };
}

function nsenter(pid: number, enters: readonly Entered[]): readonly string[] {
  const credentials = enters.includes("user") ? ["--preserve-credentials"] : [];
  return ["nsenter", ...enters.map((kind) => `--${kind}=${heldFile(pid, kind)}`), ...credentials, "--"];
}

function heldFile(pid: number, kind: Entered): string {
  return `/proc/${pid}/fd/${ENTERED[kind][1]}`;
}

function holderScript(enters: readonly Entered[]): string {
  const opened = enters.map((kind) => `${ENTERED[kind][1]}</proc/self/ns/${ENTERED[kind][0]}`);
  return `exec ${opened.join(" ")} && ip link set lo up && echo ready && exec cat >/dev/null`;
}

/** It takes milliseconds, but for a slow guest where many are started at once. */
const START_MS = 300_000;

/**
 * Starts a process behind `unshare` that waits for the end of its standard input, which comes when this process closes
 * it or dies, `kill -9` included. Every program on the way execs the next, so its pid stays the one that is known here;
 * only `unshare --fork` waits for a child, which then is the one in the namespaces.
 */
async function startHolder({ unshare, enters }: UnshareCommand): Promise<Holder> {
  const [program = "unshare", ...args] = unshare;
  const env = { LC_ALL: "C", PATH: searchPath() };
  const child = execa(program, [...args, "sh", "-c", holderScript(enters)], {
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

function readSetting(name: string): string | undefined {
  try {
    return readFileSync(`/proc/sys/${name}`, "utf8");
  } catch {
    return undefined;
  }
}
