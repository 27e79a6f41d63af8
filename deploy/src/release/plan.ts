import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { repositoryDir } from "../paths.ts";
import { type PublishedPackage, publishedPackages } from "./push.ts";

interface ReleasePlan {
  /** The version that packages, image and chart get; without a changeset the one that they have. */
  readonly version: string;
  readonly changesets: number;
  readonly packages: readonly (PublishedPackage & { readonly files: readonly string[] })[];
  readonly image: string;
  readonly tags: readonly string[];
  readonly chart: string;
}

export const OWNER = "ghcr.io/fairlead-dev";
const IMAGE = `${OWNER}/fairlead`;
const CHART = `oci://${OWNER}/charts/fairlead`;

export async function releasePlan(runner: Runner): Promise<ReleasePlan> {
  const packages = await publishedPackages();
  const { changesets, next } = await changesetStatus(runner);
  const version = next ?? packages[0]?.version ?? "0.0.0";
  const withFiles = [];
  for (const item of packages) withFiles.push({ ...item, files: await packedFiles(runner, item.dir) });
  return {
    version,
    changesets,
    packages: withFiles,
    image: IMAGE,
    tags: imageTags(version),
    chart: `${CHART}:${version}`,
  };
}

/** A release moves its minor and major tags and `latest`; a prerelease moves none. */
export function imageTags(version: string): string[] {
  const [, major, minor] = /^(\d+)\.(\d+)\.\d+$/.exec(version) ?? [];
  if (major === undefined || minor === undefined) return [version];
  return [version, `${major}.${minor}`, ...(major === "0" ? [] : [major]), "latest"];
}

interface Status {
  readonly changesets: readonly unknown[];
  readonly releases: readonly { readonly name: string; readonly newVersion: string }[];
}

async function changesetStatus(runner: Runner): Promise<{ changesets: number; next: string | undefined }> {
  const scratch = await mkdtemp(join(tmpdir(), "fairlead-release-"));
  try {
    const file = join(scratch, "status.json");
    // `env -C`: the command takes the folder that it is in, and its output relative to that.
    const status = ["pnpm", "exec", "changeset", "status", `--output=${file}`];
    await runner.run(["env", "-C", repositoryDir, ...status]);
    const { changesets, releases }: Status = JSON.parse(await readFile(file, "utf8"));
    return { changesets: changesets.length, next: releases.find(({ name }) => name === "@fairlead/agent")?.newVersion };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function packedFiles(runner: Runner, dir: string): Promise<string[]> {
  const { stdout } = await runner.run(["pnpm", "--dir", dir, "pack", "--dry-run", "--json"]);
  const { files }: { files: readonly { readonly path: string }[] } = JSON.parse(stdout);
  return files.map(({ path }) => path).sort();
}

/** A release plan for people to read. */
export function showPlan({ version, changesets, packages, image, tags, chart }: ReleasePlan): string {
  const what = changesets === 0 ? "no changesets: nothing to release" : `${changesets} changeset(s)`;
  const lines = [`Fairlead ${version} (${what})`, "", "npm, with provenance:"];
  for (const { name, version: current, files } of packages) {
    lines.push(`  ${name} ${current} → ${version}`, ...files.map((file) => `    ${file}`));
  }
  lines.push("", "image, for amd64 and arm64, with SBOM and provenance:", ...tags.map((tag) => `  ${image}:${tag}`));
  lines.push("", "chart:", `  ${chart}`, "");
  return lines.join("\n");
}

/** What the release workflow does for a commit of main. */
export type ReleaseMode = "version" | "publish" | "none";

/** What that depends on. */
export interface ReleaseState {
  /** Changesets that are not taken in yet. */
  readonly changesets: number;
  /** Of all packages. */
  readonly version: string;
  readonly tags: readonly string[];
}

/** Before the first release. */
const UNRELEASED = "0.0.0";

export function releaseTag(version: string): string {
  return `v${version}`;
}

/**
 * A version without its tag is published: the tag comes last, with the GitHub release, so that a run which broke off is
 * repeated as a whole. Each step of a release skips what is there already.
 */
export function releaseMode({ changesets, version, tags }: ReleaseState): ReleaseMode {
  if (changesets > 0) return "version";
  return version === UNRELEASED || tags.includes(releaseTag(version)) ? "none" : "publish";
}
