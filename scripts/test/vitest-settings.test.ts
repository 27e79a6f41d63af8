import { expect, test } from "vitest";
import { configDefaults } from "vitest/config";
import { packageTests } from "../../tooling/vitest.ts";

test("the search for tests enters no node_modules, whose links to packages circle", () => {
  const projects = packageTests({ folders: "packages/*" }).test?.projects ?? [];
  const excludes = projects.flatMap((project) =>
    typeof project === "object" && "test" in project ? [project.test?.exclude ?? configDefaults.exclude] : [],
  );
  expect(excludes.length).toBeGreaterThan(1);
  for (const exclude of excludes) expect(exclude).toEqual(expect.arrayContaining(configDefaults.exclude));
});
