import { expect, test } from "vitest";
import { commandLine } from "../../e2e/src/command/command-line.ts";
import { readOptions } from "../../e2e/src/command/options.ts";
import { SUITES } from "../../e2e/src/specs/spec.ts";
import { RUNS } from "../e2e.mjs";

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
