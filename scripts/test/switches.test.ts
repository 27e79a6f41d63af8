import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..", "..");

/** Set by programs of the test ground for each other, or a constant of a build. */
const INTERNAL = [
  "FRONT_TOKEN",
  "E2E_CLOCK",
  "E2E_RUN",
  "FORWARD",
  "LEFTOVERS_TEST",
  "NODES",
  "NODE_PROGRAM",
  "TEST",
  "VERSION",
];

test("docs/testing.md has every switch, and no other", () => {
  const grep = ["grep", "-ohE", "\\bFAIRLEAD_[A-Z0-9_]+", "--", "*.ts", "*.mjs", "*.sh"];
  const used = execFileSync("git", grep, { cwd: ROOT, encoding: "utf8" }).trim().split("\n");
  const table = readFileSync(join(ROOT, "docs/testing.md"), "utf8").match(/^\| `FAIRLEAD_\w+(?==)/gm) ?? [];
  const known = table.map((row) => row.slice("| `".length)).toSorted();
  const internal = new Set(INTERNAL.map((name) => `FAIRLEAD_${name}`));
  expect(known).toEqual([...new Set(used)].filter((name) => !internal.has(name)).toSorted());
});
