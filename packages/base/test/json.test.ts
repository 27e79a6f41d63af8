import { expectReadmeExample } from "@fairlead/tooling/readme";
import { expect, test } from "vitest";
import { treeProblem } from "../src/index.ts";

const BOUNDS = { depth: 3, size: 2 ** 20 };
const cycle: unknown[] = [];
cycle.push(cycle);
const twice = { a: "x" };
const long = "x".repeat(2 ** 19);

test.each<[what: string, value: unknown, problem: string | undefined]>([
  ["a value", 1, undefined],
  ["nothing", null, undefined],
  ["one thing at two places", [twice, twice], undefined],
  ["as deep as it may be", [[[1]]], undefined],
  ["deeper", [[[[]]]], "nested deeper than 3 levels"],
  ["a list that contains itself", cycle, "an alias stands inside what it refers to"],
  ["large", [long, long, long], "larger than 1 MiB with its aliases"],
  ["large names", { [long]: { [long]: { [long]: 1 } } }, "larger than 1 MiB with its aliases"],
])("%s", (_what, value, problem) => {
  expect(treeProblem(value, BOUNDS)).toBe(problem);
});

test("README example", () => expectReadmeExample(import.meta.dirname));
