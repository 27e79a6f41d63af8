import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { publishedPackages } from "../published.ts";
import { type RehearsalStep, release, versionOf } from "./rehearsal.ts";
import { commitAll, type Scratch } from "./scratch.ts";

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
