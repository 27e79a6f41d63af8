import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { commandLine, readOptions } from "../../e2e/src/command/options.ts";
import { SUITES } from "../../e2e/src/specs/spec.ts";
import { RUNS } from "../e2e.mjs";
import { root } from "../steps.mjs";

const runs = Object.entries<{ args?: readonly string[] }>(RUNS).flatMap(([name, { args }]) =>
  args === undefined ? [] : [[name, args] as const],
);

test.each(runs)("--all: the test ground takes the run %s", async (_name, args) => {
  let asked = 0;
  const actions = {
    run: async (raw: object) => {
      readOptions(raw as never);
      asked++;
    },
    cost: async () => {
      asked++;
    },
    windows: async () => {
      asked++;
    },
    down: async () => {},
    binaries: async () => {},
  };
  await commandLine(actions).parseAsync([...args], { from: "user" });
  expect(asked).toBe(1);
});

test("--all runs every suite of specs", () => {
  const named = new Set(runs.flatMap(([, args]) => args[args.indexOf("--suite") + 1]?.split(",") ?? []));
  for (const suite of ["services", "multi-cni"]) named.add(suite);
  expect(SUITES.filter((suite) => !named.has(suite))).toEqual([]);
});

test("every package has a script e2e, or CONTRIBUTING.md says what runs it", async () => {
  const page = await readFile(join(root, "CONTRIBUTING.md"), "utf8");
  const [, table = ""] = /^Packages without a script `e2e`.*?\n\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const rows = table.split("\n").map((row) => row.split("|")[1] ?? "");
  const named = new Set(rows.flatMap((cell) => Array.from(cell.matchAll(/`([\w-]+)`/g), ([, name]) => name)));
  const missing: string[] = [];
  for (const folder of ["packages", "apps"]) {
    for (const name of await readdir(join(root, folder))) {
      const { scripts } = JSON.parse(await readFile(join(root, folder, name, "package.json"), "utf8"));
      if (scripts.e2e === undefined && !named.has(name)) missing.push(name);
    }
  }
  expect(missing).toEqual([]);
});
