import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { repositoryDir } from "../paths.ts";

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

/**
 * Makes all documents those of a released project; once done, this changes nothing.
 *
 * @param dir a checkout
 */
export async function setReleasedTexts(runner: Runner, dir = repositoryDir): Promise<void> {
  const { stdout } = await runner.run(["git", "-C", dir, "ls-files", "*.md"]);
  for (const name of stdout.split("\n").filter((line) => line !== "" && !line.startsWith(".changeset/"))) {
    const file = join(dir, name);
    const before = await readFile(file, "utf8");
    const after = releasedText(before);
    if (after !== before) await writeFile(file, after);
  }
}
