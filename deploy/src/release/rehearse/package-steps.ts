import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { anyEnginePackages, bundleSize } from "../bundle-size.ts";
import { checkPackages } from "../check.ts";
import { publishedPackages } from "../published.ts";
import { MANAGERS, tryManager } from "./managers.ts";
import { publishAction, runPublishAction } from "./publish-action.ts";
import { npmToken } from "./registries.ts";
import { type Install, type Rehearsal, type RehearsalStep, versionOf } from "./rehearsal.ts";

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
