import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { CommandError, createRunner } from "@fairlead/kernel";
import { Command } from "commander";
import { agentVersion, artifactsDir, repositoryDir } from "../paths.ts";
import { buildPackages, checkPackages } from "./check.ts";
import { writeKrewFiles } from "./krew.ts";
import { imageTags, OWNER, releaseMode, releasePlan, showPlan } from "./plan.ts";
import { type Pushed, publishedPackages, pushChart, pushImage, type Registry } from "./push.ts";
import { notesOf, readChangesets, takeChangesetsIn } from "./version.ts";

/** `pnpm release`: each step of .github/workflows/release.yaml. */
const runner = createRunner();
const program = new Command("pnpm release").description("Plans, checks and prepares a release.");

program
  .option("--dry-run", "show what would go out: versions, files of each package, image tags, chart")
  .action(async ({ dryRun }: { dryRun?: true }) => {
    if (dryRun !== true) program.help({ error: true });
    await buildPackages(runner);
    process.stdout.write(showPlan(await releasePlan(runner)));
  });

program
  .command("check")
  .description("pack every package, install all in a clean project with npm, run each README's example")
  .action(async () => {
    await buildPackages(runner);
    const checks = await checkPackages(runner, await publishedPackages());
    for (const { name, problem } of checks) process.stdout.write(`${name}: ${problem ?? "ok"}\n`);
    if (checks.some(({ problem }) => problem !== undefined)) process.exitCode = 1;
  });

program
  .command("mode")
  .description("what the release workflow does for this commit: version, publish or none")
  .action(async () => {
    const { stdout } = await runner.run(["git", "-C", repositoryDir, "tag", "--list"]);
    const changesets = (await readChangesets(join(repositoryDir, ".changeset"))).length;
    const state = { changesets, version: await agentVersion(), tags: stdout.split("\n") };
    process.stdout.write(`${releaseMode(state)}\n`);
  });

program
  .command("version")
  .description("take the changesets in: versions, CHANGELOG.md, manifests, chart, and what documents say of releases")
  .action(() => takeChangesetsIn(runner));

program
  .command("notes")
  .description("what CHANGELOG.md says of this version")
  .action(async () => {
    process.stdout.write(notesOf(await readFile(join(repositoryDir, "CHANGELOG.md"), "utf8"), await agentVersion()));
  });

withRegistry(
  "push-image",
  "push the archive of `pnpm image --base-from-packages` under all tags of this version",
).action(async (flags: RegistryFlags) => {
  const version = await agentVersion();
  const archive = join(artifactsDir, `image/fairlead-${version}.oci.tar`);
  say(await pushImage(runner, archive, imageTags(version), registryOf(flags)));
});

withRegistry("push-chart", "pack the chart and push it").action(async (flags: RegistryFlags) => {
  say(await pushChart(runner, await agentVersion(), registryOf(flags)));
});

program
  .command("krew")
  .description("the kubectl plugin for krew: archive and manifest, in artifacts/krew")
  .action(async () => {
    await buildPackages(runner);
    const files = await writeKrewFiles(runner, await agentVersion(), join(artifactsDir, "krew"));
    for (const file of files) process.stdout.write(`${file}\n`);
  });

program
  .command("publish")
  .description("build, and publish to the npm registry what is not there yet")
  .action(async () => {
    await buildPackages(runner);
    const publish = ["pnpm", "--dir", repositoryDir, "exec", "changeset", "publish"] as const;
    const { stdout, stderr } = await runner.run(publish, { timeoutMs: 1_200_000 });
    process.stdout.write(stdout + stderr);
  });

interface RegistryFlags {
  readonly to: string;
  readonly plainHttp?: true;
}

function withRegistry(name: string, description: string): Command {
  return program
    .command(name)
    .description(description)
    .option("--to <prefix>", "registry and owner", OWNER)
    .option("--plain-http", "HTTP instead of HTTPS");
}

function registryOf({ to, plainHttp }: RegistryFlags): Registry {
  return { prefix: to, plainHttp: plainHttp === true };
}

/** As GitHub takes a step's outputs. */
function say({ name, digest }: Pushed): void {
  process.stdout.write(`name=${name}\ndigest=${digest}\n`);
}

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof CommandError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
