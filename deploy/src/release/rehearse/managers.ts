import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Argv, createRunner } from "@fairlead/kernel";

/** A package manager as its users have it, in a project of its own. */
export interface PackageManager {
  readonly name: string;
  /** Files that say where packages of @fairlead come from. @param registry with a slash at the end */
  readonly files: (registry: string) => Readonly<Record<string, string>>;
  /** It fails with any other exit code than 0: a warning that ends so stops a user's CI. */
  readonly add: Argv;
  /** Runs a module with the project's packages. */
  readonly run: Argv;
}

const YARN = ["npx", "--yes", "--package=@yarnpkg/cli-dist@4.18.1", "yarn"] as const;
const BUN = ["npx", "--yes", "--package=bun@1.4.5", "bun"] as const;

/** npm itself is what every other step installs with. */
export const MANAGERS: readonly PackageManager[] = [
  {
    name: "pnpm",
    files: (registry) => ({ ".npmrc": `@fairlead:registry=${registry}\n`, "pnpm-workspace.yaml": "packages: []\n" }),
    add: ["pnpm", "add"],
    run: ["node"],
  },
  {
    name: "Yarn with Plug'n'Play",
    files: (registry) => ({
      ".yarnrc.yml": JSON.stringify({
        npmScopes: { fairlead: { npmRegistryServer: registry.slice(0, -1) } },
        unsafeHttpWhitelist: ["127.0.0.1"],
        npmPreapprovedPackages: ["@fairlead/*"],
        enableGlobalCache: false,
        enableTelemetry: false,
      }),
      "yarn.lock": "",
    }),
    add: [...YARN, "add"],
    run: [...YARN, "node"],
  },
  {
    name: "bun",
    files: (registry) => ({ "bunfig.toml": `[install.scopes]\nfairlead = "${registry}"\n` }),
    add: [...BUN, "add"],
    run: [...BUN, "run"],
  },
];

/** Compiled code, a package's choice by engine, and the tracer over both. In a network namespace without anything. */
const PROGRAM = `import { openNftables } from "@fairlead/kernel";
import { sha256 } from "@fairlead/netfilter";
import { trace } from "@fairlead/trace";
const nftables = await openNftables();
await nftables.close();
console.log(typeof trace, sha256("").length);
`;

const WHAT_IT_PRINTS = "function 32";

/**
 * Installs packages by a package manager in a new project, and runs a program with them.
 *
 * @param dir absolute path, not there yet
 * @throws Error when it prints something else; CommandError when it fails
 */
export async function tryManager(manager: PackageManager, dir: string, registry: string, version: string) {
  await mkdir(dir, { recursive: true });
  const files = { ...manager.files(registry), "package.json": '{ "type": "module" }', "program.js": PROGRAM };
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text);
  const runner = createRunner({ prefix: ["env", "-C", dir], timeoutMs: 0 });
  const names = ["kernel", "netfilter", "trace"].map((name) => `@fairlead/${name}@${version}`);
  await runner.run([...manager.add, ...names]);
  const { stdout } = await runner.run(["unshare", "--net", ...manager.run, "program.js"]);
  if (stdout.trim().split("\n").at(-1) !== WHAT_IT_PRINTS)
    throw new Error(`${manager.name}: the program printed ${stdout}`);
}
