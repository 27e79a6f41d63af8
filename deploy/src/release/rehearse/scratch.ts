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
  /** Runs a program in the checkout; gives its standard output. @param env in addition to this process' own */
  inCheckout(argv: Argv, env?: Readonly<Record<string, string>>): Promise<string>;
  remove(): Promise<void>;
}

const HOUR = 3_600_000;
const GIT_USER = ["-c", "user.name=Rehearsal", "-c", "user.email=rehearsal@example.invalid"] as const;

/** Clones what is committed here, and installs what its lock file names. */
export async function createScratch(): Promise<Scratch> {
  const dir = await mkdtemp(join(tmpdir(), "fairlead-rehearsal-"));
  const [checkout, home] = [join(dir, "checkout"), join(dir, "home")];
  await mkdir(home);
  const runner = createRunner();
  await runner.run(["git", "clone", "--quiet", "--no-hardlinks", repositoryDir, checkout]);
  const scratch: Scratch = {
    dir,
    checkout,
    home,
    inCheckout: async (argv, env = {}) => (await runIn(checkout, argv, env)).stdout,
    remove: () => rm(dir, { recursive: true, force: true }),
  };
  await scratch.inCheckout(["pnpm", "install", "--frozen-lockfile", "--prefer-offline", "--silent"]);
  return scratch;
}

/** Commits everything in the checkout, as a merge would have it. */
export async function commitAll({ inCheckout }: Scratch, message: string): Promise<void> {
  await inCheckout(["git", "add", "--all"]);
  await inCheckout(["git", ...GIT_USER, "commit", "--quiet", "--message", message]);
}

/** @throws CommandError with what the program said, whose last lines name the failure */
function runIn(cwd: string, argv: Argv, env: Readonly<Record<string, string>>): ReturnType<Runner["run"]> {
  return createRunner({ env, timeoutMs: HOUR }).run(["env", "-C", cwd, ...argv]);
}
