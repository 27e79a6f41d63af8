import { join } from "node:path";
import { CommandError, createRunner } from "@fairlead/kernel";
import { Command } from "commander";
import { agentVersion } from "../agent-version.ts";
import { artifactsDir, repositoryDir } from "../paths.ts";
import { buildPackages } from "./build.ts";
import { checkPackages } from "./check.ts";
import { writeKrewFiles } from "./krew-files.ts";
import { IMAGE, imageTags, releasePlan } from "./plan.ts";
import { setVersion } from "./set-version.ts";
import { showPlan } from "./show.ts";

/** `pnpm release`: what stands before publishing, which .github/workflows/release.yaml does. */
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
    const checks = await checkPackages(runner);
    for (const { name, problem } of checks) process.stdout.write(`${name}: ${problem ?? "ok"}\n`);
    if (checks.some(({ problem }) => problem !== undefined)) process.exitCode = 1;
  });

program
  .command("version")
  .description("take the changesets in: versions and changelogs of packages, version of manifests and chart")
  .action(async () => {
    await runner.run(["env", "-C", repositoryDir, "pnpm", "exec", "changeset", "version"]);
    await setVersion(await agentVersion());
  });

program
  .command("image-names")
  .description("the names under which the image of this version goes out, one a line")
  .action(async () => {
    for (const tag of imageTags(await agentVersion())) process.stdout.write(`${IMAGE}:${tag}\n`);
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

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof CommandError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
