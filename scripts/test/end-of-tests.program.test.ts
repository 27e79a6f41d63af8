import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";

const dir = await mkdtemp(join(tmpdir(), "fairlead-limits-"));
afterAll(() => rm(dir, { recursive: true }));

const VITEST = join(import.meta.dirname, "..", "..", "node_modules", "vitest", "vitest.mjs");

test("processes end with the test that ran into its limit, and others with their file; what it waited for is reported", async () => {
  const report = join(dir, "report.json");
  const fixture = `--root=${join(import.meta.dirname, "fixtures", "limits")}`;
  const argv = [VITEST, "run", "--reporter=json", `--outputFile=${report}`, fixture];
  const run = promisify(execFile)(process.execPath, argv, { env: { ...process.env, STARTED: dir } });
  await expect(run).rejects.toMatchObject({ code: 1 });
  const [file] = JSON.parse(await readFile(report, "utf8")).testResults;
  const results: readonly Result[] = file.assertionResults;
  expect(results.map(({ status }) => status)).toEqual(["failed", "passed", "failed"]);
  expect(results[2]?.failureMessages.join("\n")).toMatch(
    /timed out in 2000ms[\s\S]*this never held: \(seen\) => seen\.includes\("the line"\)\nlast of 1:\nanother line/,
  );
  for (const name of ["file", "test"]) {
    const ids: readonly number[] = JSON.parse(await readFile(join(dir, name), "utf8"));
    for (const id of ids) await expect.poll(() => isAlive(id)).toBe(false);
  }
});

interface Result {
  readonly status: string;
  readonly failureMessages: readonly string[];
}

/** A process that nothing has reaped yet has ended all the same: it has no folder. */
function isAlive(id: number): boolean {
  return existsSync(`/proc/${id}/cwd`);
}
