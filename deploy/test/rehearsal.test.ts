import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repositoryDir } from "../src/paths.ts";
import { MANAGERS } from "../src/release/rehearse/managers.ts";
import { parseOutputs, publishAction } from "../src/release/rehearse/publish-action.ts";
import { summaryText } from "../src/release/rehearse/summary.ts";

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
