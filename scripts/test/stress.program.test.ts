import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const SCRIPT = join(import.meta.dirname, "..", "stress.mjs");
const CONFIG = join(import.meta.dirname, "fixtures", "stress", "vitest.config.ts");

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-stress-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function stress(...args: readonly string[]): ChildProcess & { readonly said: () => string } {
  const own = ["--kind=program", "--loops=1", `--config=${CONFIG}`, `--output=${join(dir, "kept")}`];
  const child = spawn(process.execPath, [SCRIPT, ...own, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, STRESS_RUNS: join(dir, "runs") },
  });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (piece: string) => {
    said += piece;
  });
  return Object.assign(child, { said: () => said });
}

test("a test that fails in some runs is found, with its seed and the output of these runs only", async () => {
  const child = stress("--runs=3");
  expect(await once(child, "close")).toEqual([1, null]);
  const [, summary = ""] = child.said().split("3 runs, 1 test failed");
  expect(summary).toMatch(
    /sometimes\.case\.ts > a test fails in every second run: failed in 1 run\n {2}run 2: .*seed -2; /,
  );
  expect(readdirSync(join(dir, "kept")).sort()).toEqual(["run-2-tests.log", "run-2-tests.report"]);
  expect(readFileSync(join(dir, "kept", "run-2-tests.log"), "utf8")).toContain("Property failed after 1 tests");
});

test("--bail ends after the first run with a failure", async () => {
  const child = stress("--runs=9", "--bail");
  expect(await once(child, "close")).toEqual([1, null]);
  expect(child.said()).toContain("2 runs, 1 test failed");
});

test("a pattern that matches nothing is wrong usage", async () => {
  const child = stress("no-such-test");
  expect(await once(child, "close")).toEqual([2, null]);
  expect(existsSync(join(dir, "runs"))).toBe(false);
});

test("no busy loop survives its parent, also when that is killed", async () => {
  const child = stress("--runs=1000");
  await expect.poll(() => child.said()).toContain("run 2 of 1000");
  const loops = childrenOf(child.pid).filter((id) => commandOf(id).includes("busy-loops.mjs"));
  expect(loops).toHaveLength(1);
  child.kill("SIGKILL");
  await once(child, "exit");
  // A process that nothing has reaped yet has ended all the same: it has no folder.
  await expect.poll(() => loops.filter((id) => existsSync(`/proc/${id}/cwd`))).toEqual([]);
});

test("what was found until Ctrl-C is listed", async () => {
  const child = stress("--runs=1000");
  await expect.poll(() => child.said()).toContain("run 3 of 1000");
  child.kill("SIGINT");
  const [code] = await once(child, "close");
  expect(code).toBe(130);
  expect(child.said()).toMatch(/\d runs, 1 test failed\n\n.* every second run: failed in 1 run/);
});

function childrenOf(id = 0): readonly string[] {
  return readFileSync(`/proc/${id}/task/${id}/children`, "utf8").split(" ").filter(Boolean);
}

function commandOf(id: string): string {
  return readFileSync(`/proc/${id}/cmdline`, "utf8").replaceAll("\0", " ");
}
