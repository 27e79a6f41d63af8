import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { agentVersion } from "../agent-version.ts";
import { repositoryDir } from "../paths.ts";
import { readChangesets, withSection } from "./changelog.ts";
import { setReleasedTexts } from "./released-text.ts";
import { setVersion } from "./set-version.ts";

/**
 * Takes the changesets in: versions of packages, manifests and chart, the changelog, and what documents say of
 * releases.
 */
export async function takeChangesetsIn(runner: Runner): Promise<void> {
  const changesets = await readChangesets(join(repositoryDir, ".changeset"));
  await runner.run(["env", "-C", repositoryDir, "pnpm", "exec", "changeset", "version"]);
  const version = await agentVersion();
  await setVersion(version);
  await setReleasedTexts(runner);
  const file = join(repositoryDir, "CHANGELOG.md");
  const before = await readFile(file, "utf8").catch(() => "");
  await writeFile(file, withSection(before, version, changesets));
}
