import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { repositoryDir } from "../src/paths.ts";
import { notesOf, readChangesets, withSection } from "../src/release/changelog.ts";
import { publishedPackages } from "../src/release/published.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "fairlead-changesets-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const changeset = (kinds: Readonly<Record<string, string>>, text: string) =>
  `---\n${Object.entries(kinds)
    .map(([name, kind]) => `"${name}": ${kind}\n`)
    .join("")}---\n\n${text}\n`;

test("a change stands once, under the highest kind that it names", async () => {
  await writeFile(join(dir, "README.md"), "# Changesets\n");
  await writeFile(
    join(dir, "a.md"),
    changeset({ "@fairlead/cli": "patch", "@fairlead/core": "minor" }, "A thing.\n\nMore of it."),
  );
  await writeFile(join(dir, "b.md"), changeset({ "@fairlead/cli": "patch" }, "A fault is mended."));
  await writeFile(join(dir, "empty.md"), "---\n---\n\nNothing for users.\n");
  const changelog = withSection("", "0.2.0", await readChangesets(dir));
  expect(changelog).toBe(
    "# Changelog\n\n## 0.2.0\n\n### New\n\n- A thing.\n\n  More of it.\n\n### Fixed\n\n- A fault is mended.\n",
  );
  const next = withSection(changelog, "0.2.1", [
    { file: "c.md", bump: "patch", packages: ["x"], text: "Another one." },
  ]);
  expect(next.startsWith("# Changelog\n\n## 0.2.1\n\nAnother one.\n\n## 0.2.0\n")).toBe(true);
  expect(notesOf(next, "0.2.1")).toBe("Another one.\n");
  expect(notesOf(next, "0.2.0")).toContain("A fault is mended.");
  expect(() => notesOf(next, "0.2")).toThrow('CHANGELOG.md has no section "## 0.2"');
});

test("a file that is no changeset is named", async () => {
  await writeFile(join(dir, "a.md"), "A thing.\n");
  await expect(readChangesets(dir)).rejects.toThrow("a.md: does not begin with packages");
});

test("each changeset of the project is about packages that are published", async () => {
  const names = (await publishedPackages()).map(({ name }) => name);
  for (const { file, packages } of await readChangesets(join(repositoryDir, ".changeset"))) {
    expect([file, packages.filter((name) => !names.includes(name))]).toEqual([file, []]);
  }
});
