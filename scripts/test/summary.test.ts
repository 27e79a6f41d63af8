import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { ended, reportFile, start } from "../steps.mjs";
import { addCounts, closing, countsOf, dearest, failures } from "../summary.mjs";

const dir = await mkdtemp(join(tmpdir(), "fairlead-summary-"));
afterAll(() => rm(dir, { recursive: true }));

const VITEST = join(import.meta.dirname, "..", "..", "node_modules", "vitest", "vitest.mjs");

test("each failure counts once: suites that die in a hook, files that die, and what fails outside of failed files", async () => {
  const COUNTS = join(dir, "counts.json");
  const argv = [VITEST, "run", `--root=${join(import.meta.dirname, "fixtures")}`];
  const run = promisify(execFile)(process.execPath, argv, { env: { ...process.env, COUNTS } });
  await expect(run).rejects.toMatchObject({ code: 1 });
  // Failed: two tests, three suites' hooks, one file's hook, one file. What they kept from running is not skipped.
  const scripts = { passed: 3, failed: 7, skipped: 4, lost: 5 };
  const outside = { passed: 0, failed: 1, skipped: 0, lost: 0 };
  const { folders, files, failures: failed } = JSON.parse(await readFile(COUNTS, "utf8"));
  expect(folders).toEqual({ scripts, "(outside of tests)": outside });
  expect(files.length).toBeGreaterThan(2);
  expect(failed).toHaveLength(scripts.failed + outside.failed);
  for (const { name, message } of failed) {
    expect(name).toMatch(/^(?:scripts\/test\/fixtures\/.+|\(outside of tests\))$/);
    expect(message).toMatch(/^[^\n]+$/);
  }
});

const core = { passed: 7, failed: 0, skipped: 2, lost: 0 };

const lastLine = (...args: Parameters<typeof closing>) => closing(...args).lines.at(-1);

test("each step counts as one test; a skip is a failure where everything has to be at hand", () => {
  const steps = { types: true, biome: false };
  const tests = { tests: { "packages/core": core } };
  expect(lastLine(steps, tests, false)).toBe("8 passed, 1 failed, 2 skipped");
  expect(lastLine(steps, tests, true)).toBe("8 passed, 3 failed");
  const died = { tests: { "packages/core": { passed: 1, failed: 1, skipped: 0, lost: 5 } } };
  expect(lastLine({}, died, true)).toBe("1 passed, 1 failed");
  expect(closing({}, died, true).lines).toContainEqual(expect.stringMatching(/kept from running .*: 5$/));
});

test("a failed test counts once: its step only counts where no test of that step has failed", () => {
  const failed = { "packages/core": { passed: 6, failed: 1, skipped: 0, lost: 0 } };
  const tests = { "kernel tests": failed, tests: { "packages/core": core } };
  expect(lastLine({ tests: true, "kernel tests": false }, tests, false)).toBe("14 passed, 1 failed, 2 skipped");
  expect(lastLine({ tests: false, "kernel tests": false }, tests, false)).toBe("13 passed, 2 failed, 2 skipped");
  expect(closing({ tests: true, "kernel tests": false }, tests, false).lines).toContainEqual(
    expect.stringMatching(/kernel tests +FAILED/),
  );
});

test("counts of several runs are added by folder, and a run that left none has failed", () => {
  const once = { "packages/core": core };
  expect(addCounts([once, once, countsOf("kernel", dir)])).toEqual({
    "packages/core": { passed: 14, failed: 0, skipped: 4, lost: 0 },
    "kernel tests": { passed: 0, failed: 1, skipped: 0, lost: 0 },
  });
});

test("the files that took most processor time come first, and one that died counts as nothing", async () => {
  await mkdir(join(dir, ".vitest"));
  const files = [
    { file: "died.test.ts", clock: 5 },
    ...[7, 12_300, 40].map((cpu) => ({ file: `${cpu}.test.ts`, cpu, clock: 2 * cpu })),
  ];
  await writeFile(join(dir, ".vitest", "pure.json"), JSON.stringify({ folders: {}, files }));
  const [head, ...rows] = dearest(["pure", "none"], dir);
  expect(head).toContain("4 files of tests, 12.3 s of CPU");
  expect(rows.map((row) => row.trim().split(/ +/))).toEqual([
    ["12.3", "24.6", "12300.test.ts"],
    ["0.0", "0.1", "40.test.ts"],
    ["0.0", "0.0", "7.test.ts"],
    ["0.0", "0.0", "died.test.ts"],
  ]);
});

test("the report of an earlier run does not count for one that is killed", async () => {
  const name = "summary-test";
  await mkdir(join(reportFile(name), ".."), { recursive: true });
  await writeFile(reportFile(name), JSON.stringify({ folders: { "packages/core": core }, files: [], failures: [] }));
  expect(countsOf(name)).toEqual({ "packages/core": core });
  await ended(start(["sh", "-c", "kill -9 $$"], "ignore", { env: { FAIRLEAD_REPORT: name } }));
  expect(countsOf(name)).toMatchObject({ [`${name} tests`]: { passed: 0, failed: 1 } });
});

test("what failed is named after the counts, with the first line of its error", async () => {
  const report = { folders: {}, files: [], failures: [{ name: "a.test.ts > adds", message: "one is not two" }] };
  await mkdir(join(dir, ".vitest"), { recursive: true });
  await writeFile(join(dir, ".vitest", "failing.json"), JSON.stringify(report));
  expect(failures(["none", "failing"], dir)).toEqual(["  failed: a.test.ts > adds: one is not two"]);
});
