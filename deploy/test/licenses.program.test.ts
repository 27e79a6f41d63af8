import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { afterAll, beforeAll, expect, test } from "vitest";
import { repositoryDir } from "../src/paths.ts";
import { bundlePrograms, incompatible, licenseList, type Programs, thirdPartyNotices } from "../src/sbom/bundle.ts";

let scratch = "";
let programs: Programs;

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "fairlead-licenses-"));
  programs = await bundlePrograms(createRunner(), scratch);
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

test("everything in the bundles may be there", () => {
  expect(programs.packages.length).toBeGreaterThan(10);
  expect(incompatible(programs.packages)).toEqual([]);
  const of = (license: string) => incompatible([{ name: "x", version: "1.0.0", license, dir: "" }]);
  expect(of("(Apache-2.0 AND BSD-3-Clause)")).toEqual([]);
  for (const license of ["AGPL-3.0-only", "(MIT AND AGPL-3.0-only)", "(MIT OR GPL-2.0-only)"]) {
    expect(of(license), license).toHaveLength(1);
  }
});

test("docs/licenses.md is what `pnpm run licenses` writes", async () => {
  expect(await readFile(join(repositoryDir, "docs/licenses.md"), "utf8")).toBe(licenseList(programs.packages));
});

test("each package's license stands in the notices", async () => {
  const notices = await thirdPartyNotices(programs.packages);
  for (const { name, version, license } of programs.packages)
    expect(notices).toContain(`${name} ${version}, ${license}\n`);
});
