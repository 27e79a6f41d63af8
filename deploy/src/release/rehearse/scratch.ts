import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Argv, createRunner, type Runner } from "@fairlead/kernel";
import { repositoryDir } from "../../paths.ts";

/** A checkout of its own that a release may change, with a home folder of its own for what programs write there. */
export interface Scratch {
  readonly dir: string;
  readonly checkout: string;
  readonly home: string;
  /** Runs programs until the rehearsal is interrupted. */
  readonly runner: Runner;
  /** Runs a program in the checkout; gives its standard output. @param env in addition to this process' own */
  inCheckout(argv: Argv, env?: Readonly<Record<string, string>>): Promise<string>;
  remove(): Promise<void>;
  /** Leaves that to another process: it takes long where disks are slow. */
  removeLater(): Promise<void>;
}

const HOUR = 3_600_000;
const GIT_USER = ["-c", "user.name=Rehearsal", "-c", "user.email=rehearsal@example.invalid"] as const;

/**
 * Clones what is committed here, and installs what its lock file names.
 *
 * @param interrupted kills what runs
 */
export async function createScratch(interrupted: AbortSignal): Promise<Scratch> {
  const dir = await mkdtemp(join(tmpdir(), "fairlead-rehearsal-"));
  const [checkout, home] = [join(dir, "checkout"), join(dir, "home")];
  await mkdir(home);
  const runner = interruptible(interrupted);
  const scratch: Scratch = {
    dir,
    checkout,
    home,
    runner,
    inCheckout: async (argv, env = {}) =>
      (await interruptible(interrupted, env).run(["env", "-C", checkout, ...argv])).stdout,
    remove: () => rm(dir, { recursive: true, force: true }),
    removeLater: async () => {
      await createRunner().run(["sh", "-c", 'setsid --fork rm -rf "$1" >/dev/null 2>&1', "sh", dir]);
    },
  };
  try {
    await runner.run(["git", "clone", "--quiet", "--no-hardlinks", repositoryDir, checkout]);
    await scratch.inCheckout(["pnpm", "install", "--frozen-lockfile", "--prefer-offline", "--silent"]);
    return scratch;
  } catch (error) {
    if (interrupted.aborted) await scratch.removeLater();
    else await scratch.remove();
    throw error;
  }
}

/** Commits everything in the checkout, as a merge would have it. */
export async function commitAll({ inCheckout }: Scratch, message: string): Promise<void> {
  await inCheckout(["git", "add", "--all"]);
  await inCheckout(["git", ...GIT_USER, "commit", "--quiet", "--message", message]);
}

function interruptible(signal: AbortSignal, env: Readonly<Record<string, string>> = {}): Runner {
  const runner = createRunner({ env, timeoutMs: HOUR });
  return {
    run: (argv, options) => runner.run(argv, { signal, ...options }),
    stream: (argv, options) => runner.stream(argv, { signal, ...options }),
  };
}
