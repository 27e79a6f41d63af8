import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";

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

/**
 * The changesets of a folder that change a package.
 *
 * @param dir absolute path of `.changeset`
 * @throws Error naming the file that is not one
 */
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

/**
 * What a changelog says of a version: the text of its GitHub release.
 *
 * @throws Error when it has no section of the version
 */
export function notesOf(changelog: string, version: string): string {
  const [, ...sections] = changelog.split(/^## /m);
  const section = sections.find((text) => text.startsWith(`${version}\n`));
  if (section === undefined) throw new Error(`CHANGELOG.md has no section "## ${version}"`);
  return `${section.slice(version.length).trim()}\n`;
}
