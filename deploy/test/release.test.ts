import { createHash } from "node:crypto";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { deployDir, repositoryDir } from "../src/paths.ts";
import { krewManifest, writeKrewFiles } from "../src/release/krew.ts";
import { imageTags, releaseMode, showPlan } from "../src/release/plan.ts";
import { publishedPackages } from "../src/release/push.ts";
import { MANAGERS, parseOutputs, publishAction } from "../src/release/rehearse/managers.ts";
import { summaryText } from "../src/release/rehearse/rehearsal.ts";
import { notesOf, readChangesets, releasedText, setVersion, withSection } from "../src/release/version.ts";

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

test("each published package is on the page that helps to choose, with its users", async () => {
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

describe("changelog", () => {
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

  test("a file that is not a changeset is named", async () => {
    await writeFile(join(dir, "a.md"), "A thing.\n");
    await expect(readChangesets(dir)).rejects.toThrow("a.md: does not begin with packages");
  });

  test("each changeset of the project is about packages that are published", async () => {
    const names = (await publishedPackages()).map(({ name }) => name);
    for (const { file, packages } of await readChangesets(join(repositoryDir, ".changeset"))) {
      expect([file, packages.filter((name) => !names.includes(name))]).toEqual([file, []]);
    }
  });
});

test.each([
  ["a version before any release, nothing to take in", { changesets: 0, version: "0.0.0", tags: [] }, "none"],
  ["changesets", { changesets: 1, version: "0.0.0", tags: [] }, "version"],
  ["a merged release", { changesets: 0, version: "0.1.0", tags: [] }, "publish"],
  ["the same after its tag", { changesets: 0, version: "0.1.0", tags: ["v0.1.0"] }, "none"],
  ["a release, the one before having its tag", { changesets: 0, version: "0.1.10", tags: ["v0.1.1"] }, "publish"],
  ["changesets after a release that broke off", { changesets: 2, version: "0.1.0", tags: [] }, "version"],
] as const)("%s", (_name, state, mode) => {
  expect(releaseMode(state)).toBe(mode);
});

const passage = (from: string) =>
  `Above.\n\n<!-- until the first release -->\nNot yet.\n<!-- from the first release\n${from}-->\n\nBelow.\n`;

test("a passage becomes what it says from the first release on", () => {
  expect(releasedText(passage("It is there.\n"))).toBe("Above.\n\nIt is there.\n\nBelow.\n");
  expect(releasedText(passage(""))).toBe("Above.\n\nBelow.\n");
  expect(releasedText(`${passage("One.\n")}${passage("Two.\n")}`)).toContain("One.\n\nBelow.\nAbove.\n\nTwo.");
  expect(releasedText("As it is.\n")).toBe("As it is.\n");
});

/** What only an unreleased project says. */
const UNRELEASED =
  /not on npm|no release yet|until the first release|(?<![\d.])0\.0\.0(?![\d.])|when there is (?:one,|a release)/i;

test("after the first release no document says that there is none", async () => {
  const { stdout } = await createRunner().run(["git", "-C", repositoryDir, "ls-files", "*.md"]);
  // It is about releases, the first one included.
  const own = /^\.changeset\/|^docs\/releasing\.md$|^CHANGELOG\.md$/;
  const names = stdout.split("\n").filter((name) => name !== "" && !own.test(name));
  expect(names.length).toBeGreaterThan(30);
  for (const name of names) {
    const lines = releasedText(await readFile(join(repositoryDir, name), "utf8")).split("\n");
    expect([name, lines.filter((line) => UNRELEASED.test(line))]).toEqual([name, []]);
  }
});

test("until then each package's README says how to have it, and from then on by npm", async () => {
  for (const { name, version, dir } of await publishedPackages()) {
    const readme = await readFile(join(dir, "README.md"), "utf8");
    expect([name, readme.includes("<!-- until the first release -->")]).toEqual([name, version === "0.0.0"]);
    expect(releasedText(readme)).toMatch(
      new RegExp(`npm install (?:-g )?(?:@fairlead/[\\w-]+ )*${name}|npx .*${name}`),
    );
  }
});

const SHA256 = "0123456789abcdef".repeat(4);

test("the manifest names the release's archive, and the file that Node runs", () => {
  const { spec, metadata } = parse(krewManifest({ version: "1.2.3", sha256: SHA256 }));
  expect(metadata.name).toBe("fairlead");
  expect(spec.version).toBe("v1.2.3");
  // krew's index takes at most 50 characters there.
  expect(spec.shortDescription.length).toBeLessThanOrEqual(50);
  expect(spec.platforms).toMatchObject([
    {
      uri: "https://github.com/fairlead-dev/fairlead/releases/download/v1.2.3/kubectl-fairlead-1.2.3.tar.gz",
      sha256: SHA256,
      bin: "main.js",
    },
  ]);
});

test("the archive has what the manifest takes out of it, under the sum that it says", async () => {
  const dir = await mkdtemp(join(tmpdir(), "fairlead-krew-"));
  try {
    const runner = createRunner();
    const cli = join(dir, "cli");
    await mkdir(join(cli, "dist"), { recursive: true });
    await writeFile(join(cli, "dist/main.js"), "#!/usr/bin/env node\n", { mode: 0o755 });
    await writeFile(join(cli, "package.json"), '{ "type": "module" }');
    const [archive = "", manifest = ""] = await writeKrewFiles(runner, "1.2.3", join(dir, "krew"), cli);
    const { spec } = parse(await readFile(manifest, "utf8"));
    const sum = createHash("sha256")
      .update(await readFile(archive))
      .digest("hex");
    expect(spec.platforms[0].sha256).toBe(sum);
    const { stdout } = await runner.run(["tar", "--list", `--file=${archive}`]);
    expect(stdout.split("\n")).toEqual(
      expect.arrayContaining([`dist/${spec.platforms[0].bin}`, "package.json", "LICENSE"]),
    );
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
});

test("the action is the workflow's, with its inputs", async () => {
  const workflow = await readFile(join(repositoryDir, ".github/workflows/release.yaml"), "utf8");
  const { repository, commit, inputs } = publishAction(workflow);
  expect(repository).toBe("changesets/action");
  expect(workflow).toContain(`changesets/action/publish@${commit}`);
  expect(inputs).toEqual({
    script: "pnpm release:publish",
    "create-github-releases": "false",
    "push-git-tags": "false",
  });
  expect(() => publishAction("jobs: { packages: { steps: [] } }")).toThrow("release.yaml has no step that uses");
});

test("outputs of an action, as GitHub's runner reads them", () => {
  const file = "published<<ghadelimiter_1\ntrue\nghadelimiter_1\nlog<<ghadelimiter_2\ntwo\nlines\nghadelimiter_2\n";
  expect([...parseOutputs(file)]).toEqual([
    ["published", "true"],
    ["log", "two\nlines"],
  ]);
});

test("the summary has each way to install, and the size of each bundle", () => {
  const text = summaryText([
    { said: "0.1.0" },
    { said: "all", installs: [{ by: "npm", version: "11.19.1", ran: "13 libraries" }] },
    { said: "1", installs: [{ by: "plugin", ran: "--version" }] },
    { said: "2", bundles: [{ name: "core", minified: 66_640, gzipped: 22_449 }] },
  ]);
  expect(text).toBe(`| installed by | version | what ran     |
| ------------ | ------- | ------------ |
| npm          | 11.19.1 | 13 libraries |
| plugin       |         | --version    |

| for a browser, with all its exports | minified | gzipped |
| ----------------------------------- | -------- | ------- |
| core                                | 66.6 kB  | 22.4 kB |
`);
  expect(summaryText([{ said: "nothing" }])).toBe("");
});

test("the documents name the package managers that are tried", async () => {
  const page = await readFile(join(repositoryDir, "docs/packages.md"), "utf8");
  const [, named = ""] = /^Each release is installed with (.*) before/m.exec(page) ?? [];
  expect(named.split(/, | and /)).toEqual(MANAGERS.map(({ name }) => name));
});
