import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { deployDir, repositoryDir } from "../src/paths.ts";
import { imageTags } from "../src/release/plan.ts";
import { publishedPackages } from "../src/release/published.ts";
import { setVersion } from "../src/release/set-version.ts";
import { showPlan } from "../src/release/show.ts";

describe("what is published", () => {
  test("depends on nothing that isn't", async () => {
    const packages = await publishedPackages();
    const names = packages.map(({ name }) => name);
    expect(names).toContain("@fairlead/core");
    expect(names.slice(-2)).toEqual(["@fairlead/agent", "@fairlead/cli"]);
    for (const { name, dir } of packages) {
      const { dependencies = {}, publishConfig } = JSON.parse(await readFile(join(dir, "package.json"), "utf8"));
      const own = Object.keys(dependencies).filter((dependency) => dependency.startsWith("@fairlead/"));
      expect([name, own.filter((dependency) => !names.includes(dependency))]).toEqual([name, []]);
      for (const dependency of own) expect(dependencies[dependency]).toBe("workspace:^");
      expect(publishConfig).toMatchObject({ access: "public", provenance: true });
    }
  });

  test("has one version", async () => {
    expect(new Set((await publishedPackages()).map(({ version }) => version)).size).toBe(1);
  });
});

test.each([
  ["0.3.1", ["0.3.1", "0.3", "latest"]],
  ["2.0.0", ["2.0.0", "2.0", "2", "latest"]],
  ["1.0.0-rc.1", ["1.0.0-rc.1"]],
])("image tags of %s", (version, tags) => {
  expect(imageTags(version)).toEqual(tags);
});

test("a plan shows each file and each tag", () => {
  const text = showPlan({
    version: "0.1.0",
    changesets: 2,
    packages: [{ name: "@fairlead/core", version: "0.0.0", dir: "/x", files: ["dist/index.js", "package.json"] }],
    image: "registry.example/fairlead",
    tags: ["0.1.0", "latest"],
    chart: "oci://registry.example/charts/fairlead:0.1.0",
  });
  for (const line of ["  @fairlead/core 0.0.0 → 0.1.0", "    dist/index.js", "  registry.example/fairlead:latest"]) {
    expect(text.split("\n")).toContain(line);
  }
});

describe("setVersion", () => {
  let dir = "";
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "fairlead-version-"));
    for (const name of ["helm", "base", "overlays", "test/fixtures"]) {
      await cp(join(deployDir, name), join(dir, name), { recursive: true });
    }
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  test("gives chart and manifests the version", async () => {
    await setVersion("1.2.3", dir);
    const chart = await readFile(join(dir, "helm/fairlead/Chart.yaml"), "utf8");
    expect(chart).toMatch(/^version: 1\.2\.3\nappVersion: 1\.2\.3$/m);
    const images = (await readFile(join(dir, "base/daemonset.yaml"), "utf8")).match(/image: .*/g);
    expect(images).toEqual(Array(2).fill("image: ghcr.io/fairlead-dev/fairlead:1.2.3"));
  });

  test("leaves no other version of the image anywhere", async () => {
    await setVersion("1.2.3", dir);
    const { stdout } = await createRunner().run(["grep", "-rhoE", 'fairlead-dev/fairlead:[0-9][^"@ ]*', dir]);
    expect(new Set(stdout.trim().split("\n"))).toEqual(new Set(["fairlead-dev/fairlead:1.2.3"]));
  });

  test("says so when there is nothing to give it to", async () => {
    await writeFile(join(dir, "helm/fairlead/Chart.yaml"), "name: fairlead\n");
    await expect(setVersion("1.2.3", dir)).rejects.toThrow("helm/fairlead/Chart.yaml");
  });
});

test("each published package is on the page that helps to choose, with who uses it", async () => {
  const page = await readFile(join(repositoryDir, "docs/packages.md"), "utf8");
  const users = Array.from(page.matchAll(/^\| (@fairlead\/[\w-]+) +\| \S.* \|$/gm), ([, name]) => name);
  expect(users.sort()).toEqual((await publishedPackages()).map(({ name }) => name).sort());
});

/** Whether a range of engines, such as `^20.19.0 || >=22.12`, has a version and all later ones. */
function admits(range: string, version: string): boolean {
  const last = range.split("||").at(-1)?.trim() ?? "";
  const [, bound] = /^>=\s*([\d.]+)$/.exec(last) ?? [];
  return bound !== undefined && compareVersions(version, bound) >= 0;
}

function compareVersions(one: string, other: string): number {
  const [a, b] = [one, other].map((text) => text.split(".").map(Number));
  const differing = [0, 1, 2].find((at) => (a?.[at] ?? 0) !== (b?.[at] ?? 0));
  return differing === undefined ? 0 : (a?.[differing] ?? 0) - (b?.[differing] ?? 0);
}

test("a package asks for the Node that its dependencies ask for", async () => {
  for (const { name, dir } of await publishedPackages()) {
    const { dependencies = {}, engines } = JSON.parse(await readFile(join(dir, "package.json"), "utf8"));
    for (const dependency of Object.keys(dependencies)) {
      const { engines: theirs = {} } = JSON.parse(
        await readFile(join(dir, "node_modules", dependency, "package.json"), "utf8"),
      );
      const own = String(engines.node).replace(">=", "");
      expect([name, dependency, theirs.node === undefined || admits(theirs.node, own)]).toEqual([
        name,
        dependency,
        true,
      ]);
    }
  }
});
