import { expect, test } from "vitest";
import { affectedTests, affectsEverything } from "../affected.mjs";

const module = (source: string, ...imports: string[]) => ({
  source,
  dependencies: imports.map((resolved) => ({ resolved })),
});

const modules = [
  module("packages/core/src/plan.ts", "packages/core/src/step.ts"),
  module("packages/core/src/step.ts"),
  module("packages/core/test/plan.test.ts", "packages/core/src/plan.ts"),
  module("packages/core/test/other.test.ts", "packages/core/test/support.ts"),
  module("packages/core/test/support.ts"),
  module("apps/agent/src/main.ts", "packages/core/src/plan.ts"),
  module("apps/agent/test/main.test.ts", "apps/agent/src/main.ts"),
  module("deploy/test/docs.test.ts"),
  module("deploy/test/image.test.ts"),
];
const tests = modules.map(({ source }) => source).filter((file) => file.endsWith(".test.ts"));
const texts: Record<string, string> = { "deploy/test/docs.test.ts": 'readdirSync(join(ROOT, "docs"))' };
const affected = (...changed: string[]) => affectedTests(changed, modules, tests, (file) => texts[file] ?? "");

test.each([
  ["what imports it, through others and other packages", "packages/core/src/step.ts", [0, 2]],
  ["a test by itself", "deploy/test/image.test.ts", [4]],
  ["what support is for", "packages/core/test/support.ts", [1]],
  ["all of a package of which a file is read", "packages/core/test/golden/a.txt", [0, 1]],
  ["all of a package that lost a module", "apps/agent/src/gone.ts", [2]],
  ["what names the folder of a document", "docs/testing.md", [3]],
  ["nothing that reads no such file", "LICENSE", []],
])("a change affects %s", (_what, changed, which) => {
  expect(affected(changed)).toEqual(which.map((at) => tests[at]));
});

test("several changes affect what each of them does, once", () => {
  expect(affected("packages/core/src/step.ts", "apps/agent/README.md", "docs/testing.md")).toEqual([
    "packages/core/test/plan.test.ts",
    "apps/agent/test/main.test.ts",
    "deploy/test/docs.test.ts",
  ]);
});

test("what decides how checks run affects everything", () => {
  for (const file of [
    "pnpm-lock.yaml",
    "packages/core/package.json",
    "tooling/runs.ts",
    "scripts/check.mjs",
    "knip.json",
  ]) {
    expect(affectsEverything(["docs/testing.md", file]), file).toBe(true);
  }
  expect(affectsEverything(["packages/core/src/step.ts", "scripts/test/affected.test.ts", "README.md"])).toBe(false);
});
