/** The steps of a rehearsal: versions, packages, and what comes with a release. */

import { createHash } from "node:crypto";
import { chmod, cp, glob, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { parse } from "yaml";
import { anyEnginePackages, bundleSize, checkPackages } from "../check.ts";
import { krewArchiveName } from "../krew.ts";
import { publishedPackages } from "../push.ts";
import { MANAGERS, publishAction, runPublishAction, tryManager } from "./managers.ts";
import {
  commitAll,
  type Install,
  npmToken,
  type Rehearsal,
  type RehearsalStep,
  release,
  type Scratch,
  versionOf,
} from "./rehearsal.ts";

/** The pull request with the next version, merged. */
const version: RehearsalStep = {
  name: "the next version",
  run: async ({ scratch }) => {
    if ((await modeOf(scratch)) === "none") await addChangeset(scratch);
    await expectMode(scratch, "version");
    await scratch.inCheckout(["pnpm", "--silent", "release:version"]);
    await expectChangelogs(scratch);
    await commitAll(scratch, "release: the next version");
    await expectMode(scratch, "publish");
    const changed = (await scratch.inCheckout(["git", "diff", "--name-only", "HEAD~1"])).trim().split("\n");
    return { said: `${await versionOf(scratch)}, ${changed.length} files changed` };
  },
};

/** Those that read a version. CI runs all tests, for the pull request as for its commit on main. */
const tests: RehearsalStep = {
  name: "linters, and tests that read the version",
  run: async ({ scratch }) => {
    await scratch.inCheckout(["pnpm", "run", "lint"]);
    const report = join(scratch.dir, "tests.json");
    await scratch.inCheckout([
      "pnpm",
      "exec",
      "vitest",
      "run",
      "--project=pure",
      "deploy/",
      "apps/",
      "--reporter=json",
      `--outputFile=${report}`,
    ]);
    const { numPassedTests, numTotalTests } = JSON.parse(await readFile(report, "utf8"));
    return { said: `${numPassedTests} of ${numTotalTests} passed` };
  },
};

export const VERSION_STEPS: readonly RehearsalStep[] = [version, tests];

async function modeOf(scratch: Scratch): Promise<string> {
  return (await release(scratch, "mode")).trim();
}

async function expectMode(scratch: Scratch, mode: string): Promise<void> {
  const found = await modeOf(scratch);
  if (found !== mode) throw new Error(`pnpm release mode says ${found}, not ${mode}`);
}

/** Right after a release there is nothing to take in. */
async function addChangeset(scratch: Scratch): Promise<void> {
  await writeFile(
    join(scratch.checkout, ".changeset/rehearsal.md"),
    '---\n"@fairlead/agent": patch\n---\n\nRehearsed.\n',
  );
  await commitAll(scratch, "rehearsal: a change");
}

/** The action that opens the pull request reads each package's changelog, and fails without one. */
async function expectChangelogs(scratch: Scratch): Promise<void> {
  for (const { name, version, dir } of await publishedPackages(scratch.checkout)) {
    const text = await readFile(join(dir, "CHANGELOG.md"), "utf8").catch(() => "");
    if (!text.includes(`\n## ${version}\n`)) throw new Error(`${name}: its CHANGELOG.md has no section of ${version}`);
  }
}

const packed: RehearsalStep = {
  name: "packed packages in a clean project",
  run: async ({ scratch }) => {
    const said = await scratch.inCheckout(["pnpm", "--silent", "release:check"]);
    return { said: `${said.match(/: ok$/gm)?.length ?? 0} of ${said.trim().split("\n").length} ok` };
  },
};

/**
 * The action reads what the publishing command says: without that the workflow would not know what it has published.
 */
const publish: RehearsalStep = {
  name: "packages to a registry, by changesets' action",
  run: async (rehearsal) => {
    await writeNpmrc(rehearsal);
    const own = await publishedPackages(rehearsal.scratch.checkout);
    const { published, packages } = await runAction(rehearsal);
    const missing = own.filter(
      (one) => !packages.some(({ name, version }) => name === one.name && version === one.version),
    );
    if (!published || missing.length > 0) {
      const names = missing.map(({ name }) => name).join(", ");
      throw new Error(`the action's outputs: published is ${published}, and published-packages lacks ${names}`);
    }
    if ((await runAction(rehearsal)).published) throw new Error("the action publishes a second time");
    const count = `${packages.length} of ${own.length} packages`;
    return { said: `the action's outputs: published true, ${count}; a second run: nothing new` };
  },
};

async function runAction({ scratch, action }: Rehearsal) {
  const use = publishAction(await readFile(join(scratch.checkout, ".github/workflows/release.yaml"), "utf8"));
  return runPublishAction(scratch, use, action ?? `https://github.com/${use.repository}`, { HOME: scratch.home });
}

async function writeNpmrc({ scratch, npm }: Rehearsal): Promise<void> {
  const lines = [`registry=http://${npm.at}/`, `//${npm.at}/:_authToken=${await npmToken(npm)}`];
  await writeFile(join(scratch.home, ".npmrc"), `${lines.join("\n")}\n`);
}

const installed: RehearsalStep = {
  name: "installed from the registry",
  run: async ({ scratch, npm }) => {
    const packages = await publishedPackages(scratch.checkout);
    const registry = `http://${npm.at}/`;
    const checks = await checkPackages(scratch.runner, packages, registry);
    const problems = checks.filter(({ problem }) => problem !== undefined);
    if (problems.length > 0) throw new Error(problems.map(({ name, problem }) => `${name}: ${problem}`).join("\n"));
    const prefix = join(scratch.dir, "global");
    const names = ["@fairlead/cli", "@fairlead/agent"];
    const options = [`--prefix=${prefix}`, `--@fairlead:registry=${registry}`];
    await scratch.inCheckout(["npm", "install", "--global", ...options, ...names]);
    const programs = ["fairlead", "kubectl-fairlead", "fairlead-proxy"];
    for (const program of programs) {
      const said = await scratch.inCheckout([join(prefix, "bin", program), "--version"]);
      if (said !== `Fairlead v${await versionOf(scratch)}\n`) throw new Error(`${program} --version says ${said}`);
    }
    const version = (await scratch.inCheckout(["npm", "--version"])).trim();
    const ran = `${checks.length} of ${packages.length} examples and programs`;
    return {
      said: ran,
      installs: [
        { by: "npm install", version, ran },
        { by: "npm install --global", version, ran: programs.map((name) => `${name} --version`).join(", ") },
      ],
    };
  },
};

const matrix: RehearsalStep = {
  name: "installed by each package manager",
  run: async ({ scratch, npm }) => {
    const packages = await publishedPackages(scratch.checkout);
    const installs: Install[] = [];
    for (const manager of MANAGERS) {
      const project = { dir: join(scratch.dir, "managers", manager.name), registry: `http://${npm.at}/`, packages };
      installs.push(await tryManager(scratch.runner, manager, project));
    }
    return { said: MANAGERS.map(({ name }) => name).join(", "), installs };
  },
};

const sizes: RehearsalStep = {
  name: "bundled for a browser",
  run: async ({ scratch }) => {
    const names = anyEnginePackages(await readFile(join(scratch.checkout, "docs/packages.md"), "utf8"));
    const project = join(scratch.dir, "managers/npm");
    const bundles = await Promise.all(names.map((name) => bundleSize(`@fairlead/${name}`, project)));
    return { said: `${bundles.length} packages`, bundles };
  },
};

export const PACKAGE_STEPS: readonly RehearsalStep[] = [packed, publish, installed, matrix, sizes];

const image: RehearsalStep = {
  name: "image: built, pushed, pulled, run",
  run: async (rehearsal) => {
    const { scratch, arches } = rehearsal;
    await scratch.inCheckout(["pnpm", "--silent", "image", "--base-from-packages", "--arch", arches]);
    const { name, digest } = await push(rehearsal, "push-image");
    const archive = join(scratch.dir, "pulled.oci.tar");
    const pull = ["--all", "--src-tls-verify=false", `docker://${name}@${digest}`, `oci-archive:${archive}`] as const;
    await scratch.inCheckout(["skopeo", "copy", ...pull]);
    await scratch.inCheckout(["pnpm", "--filter", "@fairlead/deploy", "test:image"], { FAIRLEAD_IMAGE: archive });
    const version = (await scratch.inCheckout(["skopeo", "--version"])).trim();
    const ran = "as the DaemonSet runs it; --version of each name";
    return { said: `${arches}, ${digest}`, installs: [{ by: "image, pulled", version, ran }] };
  },
};

/** The chart asks for it. */
const API_SERVER = "apiServer=https://192.0.2.1:6443";

const chart: RehearsalStep = {
  name: "chart: pushed, pulled, rendered",
  run: async (rehearsal) => {
    const { scratch } = rehearsal;
    const { name, digest } = await push(rehearsal, "push-chart");
    const version = await versionOf(scratch);
    const from = [`oci://${name}`, "--version", version, "--plain-http", "--kube-version=1.34.0", "--set", API_SERVER];
    const manifests = await scratch.inCheckout(["helm", "template", "fairlead", ...from]);
    const images = new Set(Array.from(manifests.matchAll(/image: "?([^"\s]+)/g), ([, found]) => found));
    const expected = `ghcr.io/fairlead-dev/fairlead:${version}`;
    if (images.size !== 1 || !images.has(expected))
      throw new Error(`its images are ${[...images].join(", ")}, not ${expected}`);
    await scratch.inCheckout(["pnpm", "--filter", "@fairlead/deploy", "test:tools"]);
    const helm = (await scratch.inCheckout(["helm", "version", "--template={{.Version}}"])).trim();
    const objects = manifests.match(/^kind: /gm)?.length ?? 0;
    return {
      said: `${expected}, ${digest}`,
      installs: [{ by: "helm template", version: helm, ran: `${objects} objects, with the image of this version` }],
    };
  },
};

const plugin: RehearsalStep = {
  name: "kubectl plugin: archive, manifest, installed from them",
  run: async ({ scratch }) => {
    await release(scratch, "krew");
    const [version, files] = [await versionOf(scratch), join(scratch.checkout, "artifacts/krew")];
    const [manifest, archive] = [join(files, "fairlead.yaml"), join(files, krewArchiveName(version))];
    const program = await installPlugin(scratch.runner, manifest, archive, join(scratch.dir, "krew"));
    const said = await scratch.inCheckout([program, "--version"]);
    if (said !== `Fairlead v${version}\n`) throw new Error(`${program} --version says ${said}`);
    return { said: said.trim(), installs: [{ by: "kubectl plugin's manifest", ran: "kubectl-fairlead --version" }] };
  },
};

const notes: RehearsalStep = {
  name: "notes of the release",
  run: async ({ scratch }) => {
    const lines = (await release(scratch, "notes")).trim().split("\n");
    return { said: `${lines.length} lines, from ${JSON.stringify(lines[0])}` };
  },
};

export const ARTIFACT_STEPS: readonly RehearsalStep[] = [image, chart, plugin, notes];

/** What the workflow reads of a push. */
async function push({ scratch, images }: Rehearsal, command: string): Promise<{ name: string; digest: string }> {
  const said = await release(scratch, command, "--plain-http", "--to", `${images.at}/fairlead-dev`);
  const [, name, digest] = /^name=(.+)\ndigest=(sha256:[0-9a-f]{64})$/m.exec(said) ?? [];
  if (name === undefined || digest === undefined) throw new Error(`pnpm release ${command} printed ${said}`);
  return { name, digest };
}

interface Platform {
  readonly uri: string;
  readonly sha256: string;
  readonly files: readonly { readonly from: string; readonly to: string }[];
  readonly bin: string;
}

/**
 * Installs a plugin as krew does: the archive of the manifest's platform by its sum, the files that the manifest takes
 * out of it, and a link by which kubectl finds the program.
 *
 * @param archive the file that the manifest's address leads to, once it is released
 * @param into an empty folder
 * @returns the program's path
 */
async function installPlugin(runner: Runner, manifest: string, archive: string, into: string): Promise<string> {
  const { metadata, spec } = parse(await readFile(manifest, "utf8"));
  const { uri, sha256, files, bin }: Platform = spec.platforms[0];
  if (basename(uri) !== basename(archive))
    throw new Error(`${manifest}: names ${basename(uri)}, not ${basename(archive)}`);
  const sum = createHash("sha256")
    .update(await readFile(archive))
    .digest("hex");
  if (sum !== sha256) throw new Error(`${archive}: has the sum ${sum}, not ${sha256} as the manifest says`);
  const [unpacked, store, programs] = [join(into, "unpacked"), join(into, "store"), join(into, "bin")];
  for (const dir of [unpacked, store, programs]) await mkdir(dir, { recursive: true });
  await runner.run(["tar", "--extract", "--gzip", `--file=${archive}`, `--directory=${unpacked}`]);
  for (const { from, to } of files) {
    for await (const name of glob(from, { cwd: unpacked })) {
      await cp(join(unpacked, name), join(store, to, basename(name)), { recursive: true });
    }
  }
  await chmod(join(store, bin), 0o755);
  const program = join(programs, `kubectl-${metadata.name}`);
  await symlink(join(store, bin), program);
  return program;
}
