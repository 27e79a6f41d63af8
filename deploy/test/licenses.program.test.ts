import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { afterAll, beforeAll, expect, test } from "vitest";
import { repositoryDir } from "../src/paths.ts";
import {
  type Bundle,
  bundlePrograms,
  bundleWindows,
  incompatible,
  licenseList,
  type Programs,
  packagesOf,
  thirdPartyNotices,
} from "../src/sbom/bundle.ts";

let scratch = "";
let programs: Programs;
let windows: Bundle;

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "fairlead-licenses-"));
  programs = await bundlePrograms(createRunner(), scratch);
  windows = await bundleWindows(createRunner(), join(scratch, "windows"));
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

test("the agent of the image is the one for Linux", () => {
  const { files, binaries } = programs.agent;
  const has = (text: string) => files.get("main.js")?.includes(text);
  expect(["iptables-restore", "HcnCreateLoadBalancer"].map(has)).toEqual([true, false]);
  expect([...binaries.keys()]).toEqual(["koffi-linux-arm64.node", "koffi-linux-x64.node"]);
});

test("everything in the bundles may be there", () => {
  expect(programs.packages.length).toBeGreaterThan(10);
  expect(windows.packages.map(({ name }) => name)).toContain("@koromix/koffi-win32-x64");
  expect(incompatible([...programs.packages, ...windows.packages])).toEqual([]);
  const of = (license: string) => incompatible([{ name: "x", version: "1.0.0", license, dir: "" }]);
  expect(of("(Apache-2.0 AND BSD-3-Clause)")).toEqual([]);
  for (const license of ["AGPL-3.0-only", "(MIT AND AGPL-3.0-only)", "(MIT OR GPL-2.0-only)"]) {
    expect(of(license), license).toHaveLength(1);
  }
});

test("docs/licenses.md is what `pnpm run licenses` writes", async () => {
  expect(await readFile(join(repositoryDir, "docs/licenses.md"), "utf8")).toBe(
    licenseList(packagesOf([programs.agent, programs.cli, windows])),
  );
});

test("each package's license stands in the notices", async () => {
  const notices = await thirdPartyNotices(programs.packages);
  for (const { name, version, license } of programs.packages)
    expect(notices).toContain(`${name} ${version}, ${license}\n`);
});
