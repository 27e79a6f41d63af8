import { expect, test } from "vitest";
import { lowered, measure, overBudget } from "../budget.mjs";
import { smallFiles } from "../small-files.mjs";

const FILES: ReadonlyMap<string, string> = new Map([
  ["README.md", "Three short words\n"],
  ["CHANGELOG.md", "not counted\n"],
  ["vitest.config.ts", "1\n"],
  ["packages/core/package.json", "{}\n"],
  ["packages/core/src/plan.ts", "1\n2\n3\n"],
  ["packages/core/test/plan.test.ts", "1\n2\n"],
  ["packages/core/test/fixtures/big.ts", "1\n2\n"],
]);
const found = measure([...FILES.keys()], (file) => FILES.get(file) ?? "");
const BUDGET = {
  slack: { percent: 0, lines: 0, files: 0 },
  words: 3,
  all: { source: 4, test: 2, files: 3 },
  rooms: { ".": { source: 1, test: 0, files: 1 }, "packages/core": { source: 3, test: 2, files: 2 } },
};

test("lines count by room, sources and tests apart; fixtures and changelogs do not count", () => {
  expect(found).toEqual({
    words: 3,
    rooms: { ".": { source: 1, test: 0, files: 1 }, "packages/core": { source: 3, test: 2, files: 2 } },
  });
  expect(overBudget(BUDGET, found)).toEqual([]);
});

test("a room over its number fails, and so do the sums and a room without a number", () => {
  const tight = { ...BUDGET, words: 2, rooms: { ".": BUDGET.rooms["."] } };
  expect(overBudget(tight, found).map((line) => line.split(";")[0])).toEqual([
    "budget.json: packages/core has 3 lines of source, its budget is 0",
    "budget.json: packages/core has 2 lines of tests, its budget is 0",
    "budget.json: packages/core has 2 TypeScript files, its budget is 0",
    "budget.json: 3 words of Markdown, the budget is 2",
  ]);
  const sum = { ...BUDGET, all: { ...BUDGET.all, source: 3 } };
  expect(overBudget(sum, found)).toEqual([
    'budget.json: the repository has 4 lines of source, its budget is 3; shrink it, or raise "source" there with a sentence "why"',
  ]);
  expect(overBudget({ ...sum, slack: { percent: 34, lines: 0, files: 0 } }, found)).toEqual([]);
  expect(overBudget({ ...sum, slack: { percent: 0, lines: 1, files: 0 } }, found)).toEqual([]);
});

test("numbers are lowered to what is there, and never raised", () => {
  const loose = {
    ...BUDGET,
    words: 2,
    rooms: { gone: BUDGET.rooms["."], "packages/core": { source: 9, test: 1, files: 9 } },
  };
  expect(lowered(loose, found)).toEqual({
    ...BUDGET,
    words: 2,
    rooms: { ".": { source: 1, test: 0, files: 1 }, "packages/core": { source: 3, test: 1, files: 2 } },
  });
});

test("a small file with one importer in its folder is to be part of it", () => {
  const long = "x\n".repeat(380);
  const texts = new Map([
    ["packages/a/src/index.ts", 'export { one } from "./one.ts";\n'],
    ["packages/a/src/one.ts", 'import { two } from "./two.ts";\n'],
    ["packages/a/src/two.ts", "export const two = 2;\n"],
    ["packages/a/src/long.ts", `import { three } from "./three.ts";\n${long}`],
    ["packages/a/src/three.ts", "x\n".repeat(30)],
    ["packages/a/src/shared.ts", "x\n"],
    ["packages/a/src/first.ts", 'import "./shared.ts";\n'],
    ["packages/a/src/second.ts", 'import "./shared.ts";\n'],
    ["packages/a/src/deep/far.ts", 'import { four } from "../four.ts";\n'],
    ["packages/a/src/four.ts", "x\n"],
  ]);
  expect(smallFiles(texts)).toEqual([
    "packages/a/src/two.ts: 1 lines that only packages/a/src/one.ts imports; move them there",
  ]);
});
