import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { bootFolder, INIT_FILE, PRELOAD_FILE } from "./boot-folder.ts";
import { ERRORS_FILE, OUTPUT_FILE, STATUS_FILE } from "./init-script.ts";

export interface BootOptions {
  /** Run as root in the guest; the machine's files are there in the same places. */
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Default 2048. Memory that the guest never touches costs nothing. */
  readonly memoryMiB?: number;
}

export interface BootResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Boots User-Mode Linux on this machine's own root file system, runs one command in it, and switches it off. Its network
 * is its own and leads nowhere. It ends with this process, in whatever way that ends, and leaves nothing behind.
 *
 * @throws Error with the guest's last words when the command did not come to its end in time
 */
export async function boot({ command, cwd, env = {}, timeoutMs, memoryMiB = 2048 }: BootOptions): Promise<BootResult> {
  await using folder = await bootFolder({ command, cwd, env });
  const kernel = [
    "linux.uml",
    `mem=${memoryMiB}M`,
    ...["rootfstype=hostfs", "root=/dev/root", "rw", "hostfs=/", "quiet", "panic=-1"],
    `init=${folder.path}/${INIT_FILE}`,
    ...["con=null", "con0=null,fd:1", `uml_dir=${folder.path}/uml`],
  ];
  const [program = "unshare", ...args] = [...processSpace(), "sh", "-c", KEEPER, "sh", ...kernel];
  const { all, timedOut } = await execa(program, args, {
    stdin: "pipe",
    all: true,
    env: { BOOT_FOLDER: folder.path },
    timeout: timeoutMs,
    killSignal: "SIGKILL",
    reject: false,
  });
  const [stdout = "", stderr = "", status = ""] = await Promise.all(
    [OUTPUT_FILE, ERRORS_FILE, STATUS_FILE].map((file) => readOr(join(folder.path, file))),
  );
  if (status !== "") return { exitCode: Number(status), stdout, stderr };
  const what = timedOut ? `was still running after ${timeoutMs} ms` : "ended without a status";
  throw new Error(`the command in User-Mode Linux ${what}: ${lastLines(`${all}\n${stdout}\n${stderr}`)}`);
}

/**
 * User-Mode Linux is many processes, and they may survive the first: in a process space of their own all end with its
 * first one, the keeper. That one waits for the guest, and for the end of its standard input, which comes when this
 * process dies: then it clears up.
 */
function processSpace(): readonly string[] {
  const root = process.getuid?.() === 0 ? [] : ["--user", "--map-root-user"];
  return ["unshare", ...root, "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc", "--"];
}

const KEEPER = `exec 3<&0
(cat <&3 > /dev/null; rm -rf "$BOOT_FOLDER"; kill -KILL -1) &
LD_PRELOAD="$BOOT_FOLDER/${PRELOAD_FILE}" "$@" < /dev/null`;

function readOr(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}

function lastLines(text: string): string {
  return text.trim().split("\n").slice(-20).join("\n");
}
