import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { deployDir, repositoryDir } from "../src/paths.ts";

/** What others publish and a build takes is named by its contents: a tag can be moved, a digest cannot. */
const workflowDir = join(repositoryDir, ".github/workflows");

/** `uses: owner/name@COMMIT # v1.2.3`, of which Renovate keeps both. */
const PINNED = /^\s*-?\s*uses: ([\w.-]+\/[\w./-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$/;

/** Lines of all workflows that take an action. */
async function actionLines(): Promise<readonly string[]> {
  const names = await readdir(workflowDir);
  const texts = await Promise.all(names.map((name) => readFile(join(workflowDir, name), "utf8")));
  return texts.flatMap((text) => text.split("\n")).filter((line) => /\buses:/.test(line));
}

test("actions are pinned by commit, with the version in words", async () => {
  const lines = await actionLines();
  expect(lines.length).toBeGreaterThan(20);
  expect(lines.filter((line) => !PINNED.test(line))).toEqual([]);
});

test("an action has one commit in all workflows", async () => {
  const commits = new Map<string, Set<string>>();
  for (const line of await actionLines()) {
    const [, action = "", commit = "", version = ""] = PINNED.exec(line) ?? [];
    commits.set(action, (commits.get(action) ?? new Set()).add(`${commit} ${version}`));
  }
  expect([...commits].filter(([, all]) => all.size > 1)).toEqual([]);
});

test.each([
  "      - uses: actions/checkout@v5",
  "      - uses: actions/checkout@main # v5.0.0",
  "      - uses: actions/checkout@08c6903",
  `      - uses: actions/checkout@${"0".repeat(40)}`,
  `      - uses: actions/checkout@${"0".repeat(40)} # v5`,
  "      - uses: docker://alpine:3",
])("%s is no pin", (line) => {
  expect(PINNED.test(line)).toBe(false);
});

test("images that ours is built from are pinned by digest", async () => {
  const dockerfile = await readFile(join(deployDir, "image/Dockerfile"), "utf8");
  const images = new Map([...dockerfile.matchAll(/^ARG (\w+_IMAGE)=(.*)$/gm)].map(([, name, image]) => [name, image]));
  expect(images.size).toBe(2);
  for (const image of images.values()) expect(image).toMatch(/^[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}$/);
  const from = [...dockerfile.matchAll(/^FROM (?:--platform=\S+ )?(\S+)/gm)].map(([, image = ""]) => image);
  expect(from).toHaveLength(3);
  for (const image of from) expect([...images.keys()].map((name) => `\${${name}}`)).toContain(image);
});

test("Renovate keeps both up to date", async () => {
  const { extends: presets } = JSON.parse(await readFile(join(repositoryDir, "renovate.json"), "utf8"));
  expect(presets).toEqual(
    expect.arrayContaining(["config:recommended", "helpers:pinGitHubActionDigestsToSemver", "docker:pinDigests"]),
  );
});
