import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repositoryDir } from "../src/paths.ts";
import { parseOutputs, publishAction } from "../src/release/rehearse/publish-action.ts";

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
