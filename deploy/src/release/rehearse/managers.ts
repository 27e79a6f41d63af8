import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Argv, Runner } from "@fairlead/kernel";
import { parse } from "yaml";
import { PROGRAMS } from "../check.ts";
import type { PublishedPackage } from "../push.ts";
import type { Install, Scratch } from "./rehearsal.ts";

export interface PackageManager {
  readonly name: string;
  readonly version: Argv;
  /** Files that say where packages of @fairlead come from. @param registry with a slash at the end */
  readonly files: (registry: string) => Readonly<Record<string, string>>;
  /** It fails with any other exit code than 0: a warning that ends so stops a user's CI. */
  readonly add: Argv;
  readonly run: Argv;
  /** Runs a program of the project's packages. */
  readonly exec: Argv;
}

const YARN = ["npx", "--yes", "--package=@yarnpkg/cli-dist@4.18.1", "yarn"] as const;
const BUN = ["npx", "--yes", "--package=bun@1.4.5", "bun"] as const;
const npmrc = (registry: string) => `@fairlead:registry=${registry}\n`;

/** Those that docs/packages.md names. */
export const MANAGERS: readonly PackageManager[] = [
  {
    name: "npm",
    version: ["npm", "--version"],
    files: (registry) => ({ ".npmrc": npmrc(registry) }),
    add: ["npm", "install", "--no-audit", "--no-fund"],
    run: ["node"],
    exec: ["npm", "exec", "--offline", "--"],
  },
  {
    name: "pnpm",
    version: ["pnpm", "--version"],
    files: (registry) => ({ ".npmrc": npmrc(registry), "pnpm-workspace.yaml": "packages: []\n" }),
    add: ["pnpm", "add"],
    run: ["node"],
    exec: ["pnpm", "exec"],
  },
  {
    name: "Yarn with Plug'n'Play",
    version: [...YARN, "--version"],
    files: (registry) => ({
      ".yarnrc.yml": JSON.stringify({
        npmScopes: { fairlead: { npmRegistryServer: registry.slice(0, -1) } },
        unsafeHttpWhitelist: ["127.0.0.1"],
        npmPreapprovedPackages: ["@fairlead/*"],
        // Kept by the host's name without its port: an earlier rehearsal's.
        globalFolder: ".yarn/global",
        enableGlobalCache: false,
        enableTelemetry: false,
      }),
      "yarn.lock": "",
    }),
    add: [...YARN, "add"],
    run: [...YARN, "node"],
    exec: [...YARN, "run"],
  },
  {
    name: "Bun",
    version: [...BUN, "--version"],
    files: (registry) => ({
      "bunfig.toml": `[install.scopes]\nfairlead = "${registry}"\n[install.cache]\ndir = ".cache"\n`,
    }),
    add: [...BUN, "add"],
    run: [...BUN, "run"],
    exec: [...BUN, "run"],
  },
];

/** Where a package manager is tried. */
export interface Project {
  /** Absolute path, not there yet. */
  readonly dir: string;
  /** With a slash at the end. */
  readonly registry: string;
  readonly packages: readonly PublishedPackage[];
}

/**
 * Installs all packages by a package manager in a new project, imports each library, calls the kernel through compiled
 * code, and runs each program.
 */
export async function tryManager(runner: Runner, manager: PackageManager, project: Project): Promise<Install> {
  const { dir, registry, packages } = project;
  const libraries = packages.map(({ name }) => name).filter((name) => !PROGRAMS.has(name));
  await mkdir(dir, { recursive: true });
  const files = {
    ...manager.files(registry),
    "package.json": '{ "type": "module" }',
    "program.js": program(libraries),
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text);
  const run = async (argv: Argv) => (await runner.run(["env", "-C", dir, ...argv])).stdout.trim().split("\n").at(-1);
  await run([...manager.add, ...packages.map(({ name, version }) => `${name}@${version}`)]);
  // In a network namespace of its own: what opens nf_tables here is not this machine's.
  await expectPrinted(`imported ${libraries.length}`, () => run(["unshare", "--net", ...manager.run, "program.js"]));
  for (const [name, bin] of PROGRAMS) {
    const version = packages.find((one) => one.name === name)?.version;
    await expectPrinted(`Fairlead v${version}`, () => run([...manager.exec, bin, "--version"]));
  }
  const bins = [...PROGRAMS.values()].map((bin) => `${bin} --version`);
  const ran = [`import of ${libraries.length} libraries`, "netlink by compiled code", ...bins].join(", ");
  return { by: manager.name, version: (await run(manager.version)) ?? "", ran };
}

function program(libraries: readonly string[]): string {
  return `const names = ${JSON.stringify(libraries)};
for (const name of names) await import(name);
const { openNftables } = await import("@fairlead/kernel");
await (await openNftables()).close();
console.log("imported", names.length);
`;
}

async function expectPrinted(expected: string, run: () => Promise<string | undefined>): Promise<void> {
  const printed = await run();
  if (printed !== expected) throw new Error(`it printed ${printed}, not ${expected}`);
}

/** An action as the workflow names it. */
export interface ActionUse {
  readonly repository: string;
  readonly commit: string;
  readonly inputs: Readonly<Record<string, string>>;
}

/** What the workflow's next jobs read. */
export interface Published {
  readonly published: boolean;
  readonly packages: readonly { readonly name: string; readonly version: string }[];
}

interface Step {
  readonly uses?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

const PUBLISH = /^(changesets\/action)\/publish@([0-9a-f]{40})$/;

/**
 * The action that publishes, out of the release workflow.
 *
 * @param workflow text of release.yaml
 */
export function publishAction(workflow: string): ActionUse {
  const { jobs }: { jobs: Readonly<Record<string, { readonly steps?: readonly Step[] }>> } = parse(workflow);
  for (const { uses, with: inputs = {} } of Object.values(jobs).flatMap(({ steps = [] }) => steps)) {
    const [, repository, commit] = PUBLISH.exec(uses ?? "") ?? [];
    if (repository === undefined || commit === undefined) continue;
    const texts = Object.entries(inputs).map(([name, value]) => [name, String(value)] as const);
    return { repository, commit, inputs: Object.fromEntries(texts) };
  }
  throw new Error("release.yaml has no step that uses changesets/action/publish");
}

/**
 * Runs the action itself, at the workflow's commit and with its inputs, as GitHub's runner does: inputs and files for
 * outputs come by the environment. Without releases and tags it asks nothing of GitHub.
 *
 * @param repository where its repository is cloned from: an address or a folder
 */
export async function runPublishAction(
  scratch: Scratch,
  { commit, inputs }: ActionUse,
  repository: string,
  env: Readonly<Record<string, string>>,
): Promise<Published> {
  const { runner } = scratch;
  const dir = join(scratch.dir, "action");
  await checkOut(runner, repository, commit, dir);
  const temporary = join(scratch.dir, "runner");
  await mkdir(temporary, { recursive: true });
  const output = join(temporary, "output");
  await writeFile(output, "");
  const given = Object.entries({ "github-token": "none", ...inputs }).map(
    ([name, value]) => [`INPUT_${name.replaceAll(" ", "_").toUpperCase()}`, value] as const,
  );
  const github = { GITHUB_OUTPUT: output, GITHUB_REPOSITORY: "fairlead-dev/fairlead", RUNNER_TEMP: temporary };
  // Some inputs have a hyphen, which a shell's variable cannot have; a process' may.
  await scratch.inCheckout(["node", join(dir, "dist/publish.js")], { ...env, ...github, ...Object.fromEntries(given) });
  const outputs = parseOutputs(await readFile(output, "utf8"));
  return {
    published: outputs.get("published") === "true",
    packages: JSON.parse(outputs.get("published-packages") ?? "[]"),
  };
}

async function checkOut(runner: Runner, repository: string, commit: string, dir: string): Promise<void> {
  await runner.run(["git", "init", "--quiet", dir]);
  await runner.run(["git", "-C", dir, "fetch", "--quiet", "--depth=1", repository, commit], { timeoutMs: 300_000 });
  await runner.run(["git", "-C", dir, "checkout", "--quiet", "FETCH_HEAD"]);
}

/** The file of outputs: `NAME<<DELIMITER`, lines, `DELIMITER`. */
export function parseOutputs(text: string): ReadonlyMap<string, string> {
  const outputs = new Map<string, string>();
  for (const [, name = "", , value = ""] of text.matchAll(/^([\w-]+)<<(\S+)\n([\s\S]*?)\n\2$/gm))
    outputs.set(name, value);
  return outputs;
}
