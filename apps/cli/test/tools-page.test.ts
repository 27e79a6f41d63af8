import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Example, examplesOf } from "./support/page.ts";
import { fairlead } from "./support/run.ts";

const page = await readFile(join(import.meta.dirname, "..", "..", "..", "docs", "tools.md"), "utf8");

let dir = "";
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "fairlead-tools-"));
  const manifests = /^```yaml\n(.*?)^```/ms.exec(page)?.[1] ?? "";
  await writeFile(join(dir, "services.yaml"), manifests);
});
afterAll(() => rm(dir, { recursive: true }));

/** Files of the page lie in a folder of the test's own. */
const inFolder = (word: string) => (/^[\w-]+\.(?:yaml|txt)$/.test(word) ? join(dir, word) : word);

async function run({ words, into }: Example): Promise<string> {
  const { out, err } = await fairlead(words.map(inFolder));
  if (into === undefined) return err + out;
  await writeFile(inFolder(into), out);
  return err;
}

// One after the other: later ones read what earlier ones wrote.
test.each(examplesOf(page))("$line", async (example) => {
  expect(await run(example)).toBe(example.output);
});

test("the page has examples", () => {
  expect(examplesOf(page).length).toBeGreaterThan(5);
});
