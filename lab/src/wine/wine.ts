/**
 * Programs for Windows under Wine, with HCN in memory. Wine has a prefix of its own below a folder, and its drive Z: is
 * that folder: what runs there does not see the machine's files. The caller is in a network namespace of its own.
 */

import { existsSync } from "node:fs";
import { mkdir, rm, symlink } from "node:fs/promises";
import { join, relative } from "node:path";
import { execa } from "execa";

const WINE = "/usr/lib/wine/wine64";
const SERVER = "/usr/lib/wine/wineserver64";
const COMPILER = "x86_64-w64-mingw32-gcc";

/** The Debian packages that it needs. */
const PACKAGES = ["wine64", "wine", "gcc-mingw-w64-x86-64"] as const;

export interface WindowsProgram {
  readonly running: boolean;
  /** Resolves to its exit code; undefined: it was killed. */
  readonly ended: Promise<number | undefined>;
  /** As the end of its process in Windows' task manager. */
  kill(): void;
}

export interface Wine {
  path(file: string): string;
  /** Starts a program; its output goes to `NAME.out` and `NAME.err` in the folder. */
  start(name: string, argv: readonly [string, ...string[]], env?: Readonly<Record<string, string>>): WindowsProgram;
  /** Ends all that runs in the prefix. */
  stop(): Promise<void>;
}

/** Why it cannot be used on this machine; undefined: it can. */
export async function whyNoWine(): Promise<string | undefined> {
  if (process.arch !== "x64") return "Wine runs Windows programs for x64 on x64 machines only";
  for (const argv of [
    [WINE, "--version"],
    [COMPILER, "--version"],
  ] as const) {
    const failed = await run(argv[0], [argv[1]]).catch(() => true);
    if (failed === true) return `${argv[0]} is missing: apt-get install --no-install-recommends ${PACKAGES.join(" ")}`;
  }
  return undefined;
}

const run = (program: string, argv: readonly string[], env: NodeJS.ProcessEnv = {}) => execa(program, argv, { env });

/** Makes a prefix, and puts HCN into its system folder, the only folder from which programs load it. */
export async function createWine(folder: string): Promise<Wine> {
  const prefix = join(folder, "prefix");
  const system = join(prefix, "drive_c/windows/system32");
  const env = {
    ...process.env,
    WINEPREFIX: prefix,
    WINEARCH: "win64",
    WINEDEBUG: "-all",
    WINEDLLOVERRIDES: "mscoree,mshtml=",
    DISPLAY: "",
    HOME: folder,
  };
  await mkdir(prefix, { recursive: true });
  await makePrefix(system, env);
  await rm(join(prefix, "dosdevices/z:"), { force: true });
  await symlink(folder, join(prefix, "dosdevices/z:"));
  // Node asks for Windows 10.
  await run(WINE, ["reg", "add", "HKCU\\Software\\Wine", "/v", "Version", "/d", "win10", "/f"], env);
  await buildLibraries(system);
  return {
    path: (file) => `Z:\\${relative(folder, file).replaceAll("/", "\\")}`,
    start(name, argv, more = {}) {
      // Files themselves: Node for Windows cannot open the pipes of Linux that Wine gives it.
      const child = execa("/bin/sh", ["-c", 'exec "$@" >>"$OUT" 2>>"$ERR" </dev/null', "sh", WINE, ...argv], {
        // Programs that are started from what is on no drive cannot start others.
        cwd: folder,
        env: { ...env, ...more, OUT: join(folder, `${name}.out`), ERR: join(folder, `${name}.err`) },
        reject: false,
      });
      let running = true;
      const ended = child.then(({ exitCode }) => {
        running = false;
        return exitCode;
      });
      return {
        get running() {
          return running;
        },
        ended,
        kill: () => void child.kill("SIGKILL"),
      };
    },
    async stop() {
      await run(SERVER, ["-k"], env).catch(() => {});
      await run(SERVER, ["-w"], env).catch(() => {});
    },
  };
}

/** It always complains that there is no system folder for 32 bits, so what it made shows whether it succeeded. */
async function makePrefix(system: string, env: NodeJS.ProcessEnv): Promise<void> {
  const options = { env: { ...env, WINEDEBUG: "fixme-all" }, reject: false, all: true } as const;
  const { exitCode, signal, all } = await execa(WINE, ["wineboot", "-i"], options);
  const end = signal ?? `exit code ${exitCode}`;
  if (!existsSync(join(system, "kernel32.dll"))) throw new Error(`wineboot made no system folder (${end}): ${all}`);
}

async function buildLibraries(folder: string): Promise<void> {
  const source = (name: string) => join(import.meta.dirname, name);
  const build = (library: string, file: string, ...more: readonly string[]) =>
    run(COMPILER, ["-O2", "-s", "-shared", "-o", join(folder, library), source(file), ...more]);
  await build("bcryptprimitives.dll", "bcryptprimitives.c", "-ladvapi32");
  await build("computenetwork.dll", "hcn-fake.c", "-lole32");
  await build("vmcompute.dll", "hcn-fake.c", "-DVMCOMPUTE", "-lole32");
}
