import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { configDefaults } from "vitest/config";
import { CORE_TESTS } from "../../tooling/core-tests.ts";
import { packageTests } from "../../tooling/vitest.ts";

test("the search for tests enters no node_modules, whose links to packages circle", () => {
  const projects = packageTests({ folders: "packages/*" }).test?.projects ?? [];
  const excludes = projects.flatMap((project) =>
    typeof project === "object" && "test" in project ? [project.test?.exclude ?? configDefaults.exclude] : [],
  );
  expect(excludes.length).toBeGreaterThan(1);
  for (const exclude of excludes) expect(exclude).toEqual(expect.arrayContaining(configDefaults.exclude));
});

test("each test of the core is there", () => {
  const root = join(import.meta.dirname, "..", "..");
  expect(CORE_TESTS.filter((file) => !existsSync(join(root, file)))).toEqual([]);
});
