import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { execa } from "execa";
import { bootFolder, INIT_FILE, PRELOAD_FILE } from "./boot-folder.ts";
import { coreOfNextGuest } from "./core.ts";
import { ERRORS_FILE, OUTPUT_FILE, STATUS_FILE } from "./init-script.ts";

export interface GuestOptions {
  /** Run as root in the guest; the machine's files are there in the same places. */
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Default 2048. Memory that the guest never touches costs nothing. */
  readonly memoryMiB?: number;
  /** Default: none, and the guest's network leads nowhere. */
  readonly link?: GuestLink;
}

/** The guest's way to others: its interface `vec0` is the other end of this tap device. */
export interface GuestLink {
  readonly namespace: NetworkNamespace;
  /** It exists, and no other program has opened it. */
  readonly tap: string;
}

export interface GuestResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running guest. It ends with this process, in whatever way that ends, and leaves nothing behind. */
export interface Guest {
  /** Resolves with what came of the command, or rejects with the guest's last words when it ended without a status. */
  readonly ended: Promise<GuestResult>;
  /** Switches it off at once; resolves once it is gone. */
  kill(): Promise<void>;
}

export interface BootOptions extends GuestOptions {
  readonly timeoutMs: number;
}

/**
 * Boots a guest for one command and waits until it is switched off.
 *
 * @throws Error with the guest's last words when the command did not come to its end in time
 */
export async function boot({ timeoutMs, ...options }: BootOptions): Promise<GuestResult> {
  const guest = await startGuest(options);
  let late: string | undefined;
  const timer = setTimeout(() => {
    late = `the command in User-Mode Linux was still running after ${timeoutMs} ms`;
    void guest.kill();
  }, timeoutMs);
  try {
    return await guest.ended;
  } catch (error) {
    // That it ended without a status follows from its being killed.
    throw late === undefined ? error : new Error(late, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/** Boots User-Mode Linux on this machine's own root file system and starts one command in it. */
export async function startGuest(options: GuestOptions): Promise<Guest> {
  const { command, cwd, env = {}, memoryMiB = 2048, link } = options;
  const folder = await bootFolder({ command, cwd, env });
  const kernel = [
    "linux.uml",
    `mem=${memoryMiB}M`,
    ...["rootfstype=hostfs", "root=/dev/root", "rw", "hostfs=/", "quiet", "panic=-1"],
    `init=${folder.path}/${INIT_FILE}`,
    ...["con=null", "con0=null,fd:1", `uml_dir=${folder.path}/uml`],
    ...(link === undefined ? [] : [`vec0:transport=tap,ifname=${link.tap},depth=128,gro=1`]),
  ];
  const onOneCore = ["taskset", "--cpu-list", String(await coreOfNextGuest())];
  const space = processSpace(link?.namespace);
  const [program = "taskset", ...args] = [...onOneCore, ...space, "sh", "-c", KEEPER, "sh", ...kernel];
  const child = execa(program, args, {
    stdin: "pipe",
    all: true,
    env: { BOOT_FOLDER: folder.path },
    reject: false,
  });
  const ended = child.then(async ({ all }) => {
    await using _ = folder;
    return await resultIn(folder.path, all);
  });
  // Whoever only kills it need not ask how it ended.
  ended.catch(() => {});
  return {
    ended,
    kill: async () => {
      child.kill("SIGKILL");
      await ended.catch(() => {});
    },
  };
}

async function resultIn(folder: string, console: string): Promise<GuestResult> {
  const [stdout = "", stderr = "", status = ""] = await Promise.all(
    [OUTPUT_FILE, ERRORS_FILE, STATUS_FILE].map((file) => readOr(join(folder, file))),
  );
  if (status !== "") return { exitCode: Number(status), stdout, stderr };
  throw new Error(`User-Mode Linux ended before its command: ${lastLines(`${console}\n${stdout}\n${stderr}`)}`);
}

/**
 * User-Mode Linux is many processes, and they may survive the first: in a process space of their own all end with its
 * first one, the keeper. That one waits for the guest, and for the end of its standard input, which comes when this
 * process dies: then it clears up. Signals that all of a terminal's or a shell's processes get are not for it.
 */
function processSpace(beside: NetworkNamespace | undefined): readonly string[] {
  const isRoot = process.getuid?.() === 0 || beside?.as === "user";
  const user = isRoot ? [] : ["--user", "--map-root-user"];
  return [
    ...(beside?.argvPrefix ?? []),
    ...["unshare", ...user, "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc", "--"],
  ];
}

const KEEPER = `exec 3<&0
(trap '' HUP INT TERM; cat <&3 > /dev/null; rm -rf "$BOOT_FOLDER"; kill -KILL -1) &
LD_PRELOAD="$BOOT_FOLDER/${PRELOAD_FILE}" "$@" < /dev/null`;

function readOr(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}

function lastLines(text: string): string {
  return text.trim().split("\n").slice(-20).join("\n");
}
