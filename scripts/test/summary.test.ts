import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { addCounts, closing, countsOf } from "../summary.mjs";

const dir = await mkdtemp(join(tmpdir(), "fairlead-summary-"));
afterAll(() => rm(dir, { recursive: true }));

const VITEST = join(import.meta.dirname, "..", "..", "node_modules", "vitest", "vitest.mjs");

test("suites that die in a hook, and files that die, are failed; tests that they kept from running are not skipped", async () => {
  const COUNTS = join(dir, "counts.json");
  const argv = [VITEST, "run", `--root=${join(import.meta.dirname, "fixtures")}`];
  const run = promisify(execFile)(process.execPath, argv, { env: { ...process.env, COUNTS } });
  await expect(run).rejects.toMatchObject({ code: 1 });
  // Failed: one test, three suites' hooks, one file's hook, one file.
  const counts = { passed: 2, failed: 6, skipped: 4, lost: 5 };
  expect(JSON.parse(await readFile(COUNTS, "utf8"))).toEqual({ scripts: counts });
});

const core = { passed: 7, failed: 0, skipped: 2, lost: 0 };

test("each step counts as one test; a skip is a failure where everything has to be at hand", () => {
  const steps = { types: true, biome: false };
  expect(closing(steps, { "packages/core": core }, false).lines.at(-1)).toBe("8 passed, 1 failed, 2 skipped");
  expect(closing(steps, { "packages/core": core }, true).lines.at(-1)).toBe("8 passed, 3 failed");
  const died = { passed: 1, failed: 1, skipped: 0, lost: 5 };
  expect(closing({}, { "packages/core": died }, true).lines.at(-1)).toBe("1 passed, 1 failed");
  expect(closing({}, { "packages/core": died }, true).lines).toContainEqual(
    expect.stringMatching(/kept from running .*: 5$/),
  );
});

test("counts of several runs are added by folder, and a run that left none has failed", () => {
  const once = { "packages/core": core };
  expect(addCounts([once, once, countsOf("kernel", dir)])).toEqual({
    "packages/core": { passed: 14, failed: 0, skipped: 4, lost: 0 },
    "kernel tests": { passed: 0, failed: 1, skipped: 0, lost: 0 },
  });
});
