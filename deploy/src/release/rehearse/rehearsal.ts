import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type Argv, createRunner, type Runner } from "@fairlead/kernel";
import { markdownTable } from "@fairlead/tooling/markdown-table";
import { repositoryDir } from "../../paths.ts";
import type { BundleSize } from "../check.ts";

/** What the steps of a rehearsal have in common. */
export interface Rehearsal {
  readonly scratch: Scratch;
  readonly npm: LocalServer;
  readonly images: LocalServer;
  /** Of the image, with a comma between. */
  readonly arches: string;
  /** Where the action's repository is cloned from; absent: GitHub. */
  readonly action?: string;
}

/** One step of a release: commands of the workflow. */
export interface RehearsalStep {
  readonly name: string;
  run(rehearsal: Rehearsal): Promise<StepResult>;
}

export interface StepResult {
  /** What came of it, in a few words. */
  readonly said: string;
  readonly installs?: readonly Install[];
  readonly bundles?: readonly BundleSize[];
}

/** What was released, as one of its users gets it. */
export interface Install {
  /** A package manager's command, or a program that fetches. */
  readonly by: string;
  /** Of that program; absent: it is part of this project's tests. */
  readonly version?: string;
  /** What was run of it afterwards. */
  readonly ran: string;
}

/** A command of `pnpm release`, as the workflow runs it. */
export function release(scratch: Scratch, ...args: readonly string[]): Promise<string> {
  return scratch.inCheckout(["pnpm", "--silent", "release", ...args]);
}

export async function versionOf({ checkout }: Scratch): Promise<string> {
  const { version } = JSON.parse(await readFile(join(checkout, "apps/agent/package.json"), "utf8"));
  return String(version);
}

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

/** How users get a release, and how large its packages are, as tables in Markdown; empty where no step has any. */
export function summaryText(results: readonly StepResult[]): string {
  const installs = results.flatMap(({ installs = [] }) => installs);
  const bundles = results.flatMap(({ bundles = [] }) => bundles);
  const tables = [
    table(
      ["installed by", "version", "what ran"],
      installs.map(({ by, version = "", ran }) => [by, version, ran]),
    ),
    table(
      ["for a browser, with all its exports", "minified", "gzipped"],
      bundles.map(({ name, minified, gzipped }) => [name, kilobytes(minified), kilobytes(gzipped)]),
    ),
  ];
  return tables.filter((text) => text !== "").join("\n");
}

type Row = readonly string[];

function table(head: Row, rows: readonly Row[]): string {
  return rows.length === 0 ? "" : `${markdownTable(head, rows).join("\n")}\n`;
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`;
}

/** A server on a loopback port of this machine that lives as long as the rehearsal. */
export interface LocalServer {
  /** `127.0.0.1:PORT` */
  readonly at: string;
  stop(): Promise<void>;
}

/**
 * The npm registry is installed where the rehearsal works: it is a large tree, and no part of what is built or
 * released. A dependency of it names another by a tag, which can be moved.
 */
const VERDACCIO = { dependencies: { verdaccio: "6.10.4" }, overrides: { "node-fetch": "2.7.0" } };

/** An npm registry that has nothing yet and takes packages of every account. */
export async function startNpmRegistry(runner: Runner, dir: string): Promise<LocalServer> {
  const at = await freeAddress();
  await mkdir(dir, { recursive: true });
  const config = {
    storage: join(dir, "storage"),
    listen: at,
    web: { enable: false },
    auth: { htpasswd: { file: join(dir, "htpasswd"), max_users: 1 } },
    uplinks: {},
    packages: { "**": { access: "$all", publish: "$authenticated" } },
    log: { type: "stdout", level: "warn" },
    max_body_size: "100mb",
  };
  await writeFile(join(dir, "config.yaml"), JSON.stringify(config));
  await writeFile(join(dir, "package.json"), JSON.stringify(VERDACCIO));
  await runner.run(["npm", "install", `--prefix=${dir}`, "--no-audit", "--no-fund", "--silent"]);
  const program = join(dir, "node_modules/.bin/verdaccio");
  return startServer([program, "--config", join(dir, "config.yaml")], at, "/-/ping");
}

/** An account at a registry; its token stands for trusted publishing, which only GitHub's own jobs have. */
export async function npmToken({ at }: LocalServer): Promise<string> {
  const name = "rehearsal";
  const body = JSON.stringify({ name, password: "not a secret" });
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`http://${at}/-/user/org.couchdb.user:${name}`, { method: "PUT", headers, body });
  const { token }: { token?: string } = JSON.parse(await answer.text());
  if (token === undefined) throw new Error(`the npm registry made no account: ${answer.status}`);
  return token;
}

/** A registry of images and charts: Debian's `docker-registry`, which is the CNCF's distribution. */
export async function startImageRegistry(dir: string): Promise<LocalServer> {
  const at = await freeAddress();
  await mkdir(dir, { recursive: true });
  const config = {
    version: 0.1,
    log: { level: "error", accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: join(dir, "storage") } },
    http: { addr: at, secret: "not a secret" },
  };
  await writeFile(join(dir, "config.yaml"), JSON.stringify(config));
  return startServer(["docker-registry", "serve", join(dir, "config.yaml")], at, "/v2/");
}

async function startServer(argv: Argv, at: string, path: string): Promise<LocalServer> {
  const stop = new AbortController();
  const ended = createRunner()
    .run(["setpriv", "--pdeathsig", "KILL", ...argv], { signal: stop.signal, timeoutMs: 0 })
    .then(
      () => new Error(`${argv[0]} ended`),
      (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
    );
  let failure: Error | undefined;
  void ended.then((error) => {
    failure = error;
  });
  while (!(await answers(`http://${at}${path}`))) {
    if (failure !== undefined) throw failure;
    await setTimeout(200);
  }
  return {
    at,
    stop: async () => {
      stop.abort();
      await ended;
    },
  };
}

async function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
}

function freeAddress(): Promise<string> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      server.close(() => resolve(`127.0.0.1:${port}`));
    });
  });
}
