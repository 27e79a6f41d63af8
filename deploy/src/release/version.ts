/** `pnpm release version`: the next version goes into all packages and texts, with what changed. */

import { glob, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { parse } from "yaml";
import { agentVersion, deployDir, repositoryDir } from "../paths.ts";

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

/** One file of `.changeset`. */
export interface Changeset {
  readonly file: string;
  /** The highest kind that it names. */
  readonly bump: Bump;
  readonly packages: readonly string[];
  /** What users read, as Markdown. */
  readonly text: string;
}

const BUMPS = ["major", "minor", "patch"] as const;
type Bump = (typeof BUMPS)[number];

const HEADINGS: Readonly<Record<Bump, string>> = { major: "Breaking changes", minor: "New", patch: "Fixed" };
const TITLE = "# Changelog\n";

/** The changesets of a folder that change a package. */
export async function readChangesets(dir: string): Promise<readonly Changeset[]> {
  const names = (await readdir(dir)).filter((name) => name.endsWith(".md") && name !== "README.md").sort();
  const all = await Promise.all(
    names.map(async (name) => parseChangeset(name, await readFile(join(dir, name), "utf8"))),
  );
  return all.filter(({ packages }) => packages.length > 0);
}

function parseChangeset(file: string, markdown: string): Changeset {
  const [, head, text = ""] = /^---\n([\s\S]*?)---\n([\s\S]*)$/.exec(markdown) ?? [];
  if (head === undefined) throw new Error(`${file}: does not begin with packages between two lines of ---`);
  const kinds: Record<string, unknown> = parse(head) ?? {};
  const bump = BUMPS.find((kind) => Object.values(kinds).includes(kind)) ?? "patch";
  return { file, bump, packages: Object.keys(kinds), text: text.trim() };
}

/** A changelog with a section for a version before all others: each change once, whichever packages it is about. */
export function withSection(changelog: string, version: string, changesets: readonly Changeset[]): string {
  const older = changelog.startsWith(TITLE) ? changelog.slice(TITLE.length) : `\n${changelog}`;
  return `${TITLE}\n## ${version}\n\n${sectionText(changesets)}${older}`.trimEnd().concat("\n");
}

/** A release of one changeset is its text. */
function sectionText(changesets: readonly Changeset[]): string {
  const [first, ...more] = changesets;
  if (first !== undefined && more.length === 0) return `${first.text}\n`;
  const parts = BUMPS.map((kind) => {
    const items = changesets
      .filter(({ bump }) => bump === kind)
      .map(({ text }) => `- ${text.replaceAll(/\n(?=.)/g, "\n  ")}`);
    return items.length === 0 ? "" : `### ${HEADINGS[kind]}\n\n${items.join("\n")}\n`;
  });
  return parts.filter((part) => part !== "").join("\n");
}

/** What a changelog says of a version: the text of its GitHub release. */
export function notesOf(changelog: string, version: string): string {
  const [, ...sections] = changelog.split(/^## /m);
  const section = sections.find((text) => text.startsWith(`${version}\n`));
  if (section === undefined) throw new Error(`CHANGELOG.md has no section "## ${version}"`);
  return `${section.slice(version.length).trim()}\n`;
}

/** Where a version stands in YAML: the image's tag, wherever it is named, and the chart's own fields. */
const IMAGE_TAG = /(ghcr\.io\/fairlead-dev\/fairlead:)[\w.+-]+/g;
const CHART = "helm/fairlead/Chart.yaml";
const CHART_FIELDS = [/^(version: )\S+$/gm, /^(appVersion: )\S+$/gm];

/** Gives manifests and chart the version of the packages. */
export async function setVersion(version: string, dir = deployDir): Promise<void> {
  let images = 0;
  for await (const name of glob("{base,overlays,components,helm,test}/**/*.yaml", { cwd: dir })) {
    const file = join(dir, name);
    const text = await readFile(file, "utf8");
    if (text.search(IMAGE_TAG) < 0) continue;
    images += 1;
    await writeFile(file, text.replaceAll(IMAGE_TAG, `$1${version}`));
  }
  if (images === 0) throw new Error(`${dir}: no manifest names ghcr.io/fairlead-dev/fairlead:VERSION`);
  const chart = join(dir, CHART);
  await writeFile(chart, replaceFields(await readFile(chart, "utf8"), version));
}

function replaceFields(chart: string, version: string): string {
  return CHART_FIELDS.reduce((before, field) => {
    if (before.search(field) < 0) throw new Error(`${CHART}: there is no ${field.source}`);
    return before.replaceAll(field, `$1${version}`);
  }, chart);
}

/**
 * What documents say until there is a release, and in a comment below it what they say from then on:
 *
 *     <!-- until the first release -->
 *     Not on npm yet.
 *     <!-- from the first release
 *     `npm install @fairlead/core`
 *     -->
 */
const PASSAGE = /<!-- until the first release -->\n[\s\S]*?<!-- from the first release\n([\s\S]*?)-->\n(\n?)/g;

/** A document as it is from the first release on. What has no such passage stays as it is. */
export function releasedText(markdown: string): string {
  return markdown.replaceAll(PASSAGE, (_, text: string, rest: string) => (text === "" ? "" : text + rest));
}

/** Makes all documents those of a released project; once done, this changes nothing. */
async function setReleasedTexts(runner: Runner): Promise<void> {
  const { stdout } = await runner.run(["git", "-C", repositoryDir, "ls-files", "*.md"]);
  for (const name of stdout.split("\n").filter((line) => line !== "" && !line.startsWith(".changeset/"))) {
    const file = join(repositoryDir, name);
    const before = await readFile(file, "utf8");
    const after = releasedText(before);
    if (after !== before) await writeFile(file, after);
  }
}
