import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { afterAll, beforeAll, expect, test } from "vitest";
import { repositoryDir } from "../src/paths.ts";
import { type Bundle, bundleAgent } from "../src/sbom/bundle.ts";
import { incompatible, licenceList } from "../src/sbom/licences.ts";
import { thirdPartyNotices } from "../src/sbom/notices.ts";

let scratch = "";
let bundle: Bundle;

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "fairlead-licences-"));
  bundle = await bundleAgent(createRunner(), scratch);
}, 60_000);
afterAll(() => rm(scratch, { recursive: true, force: true }));

test("everything in the bundle may be there", () => {
  expect(bundle.packages.length).toBeGreaterThan(10);
  expect(incompatible(bundle.packages)).toEqual([]);
  expect(incompatible([{ name: "x", version: "1.0.0", license: "AGPL-3.0-only", dir: "" }])).toHaveLength(1);
});

test("docs/licences.md is what `pnpm run licences` writes", async () => {
  expect(await readFile(join(repositoryDir, "docs/licences.md"), "utf8")).toBe(licenceList(bundle.packages));
});

test("each package's licence stands in the notices", async () => {
  const notices = await thirdPartyNotices(bundle.packages);
  for (const { name, version, license } of bundle.packages)
    expect(notices).toContain(`${name} ${version}, ${license}\n`);
});
