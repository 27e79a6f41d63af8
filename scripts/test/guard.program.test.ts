import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const FIXTURES = join(import.meta.dirname, "fixtures", "guard");
const VITEST = join(import.meta.dirname, "..", "..", "node_modules", "vitest", "vitest.mjs");

let temporary = "";
beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), "fairlead-guard-"));
});
afterEach(() => rmSync(temporary, { recursive: true, force: true }));

/** Starts a command whose processes print their ids, one a line; gives them once `many` have. */
async function started(many: number, argv: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, argv, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, npm_lifecycle_event: "", TMPDIR: temporary, ...env },
  });
  const closed = once(child, "close");
  let said = "";
  child.stderr.on("data", (piece: Buffer) => {
    said += piece;
  });
  for await (const piece of child.stdout.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    said += piece;
    if (idsIn(said).length >= many) break;
  }
  const ids = idsIn(said);
  child.stdout.on("data", (piece: string) => {
    said += piece;
  });
  return { child, closed, ids, said: () => said };
}

function idsIn(text: string): readonly number[] {
  return Array.from(text.matchAll(/^id (\d+)\n/gm), ([, id]) => Number(id));
}

/** A process that nothing has reaped yet has ended all the same: it has no folder. */
function isAlive(id: number): boolean {
  return existsSync(`/proc/${id}/cwd`);
}

const SCRIPT = join(FIXTURES, "script.mjs");

describe("a script of scripts/steps.mjs takes along what it has started, and its folder", () => {
  test.each(["SIGKILL", "SIGTERM", "SIGINT"] as const)("when it ends by %s", async (signal) => {
    const { child, closed, ids } = await started(3, [SCRIPT]);
    expect(ids.every(isAlive)).toBe(true);
    expect(readdirSync(temporary)).toEqual([expect.stringMatching(/^fairlead-\d+-\d+$/)]);
    child.kill(signal);
    await closed;
    await expect.poll(() => ids.filter(isAlive)).toEqual([]);
    await expect.poll(() => readdirSync(temporary)).toEqual([]);
  });

  test("when the process that has started it is killed; what would come next does not start", async () => {
    const { child, closed, ids, said } = await started(3, [join(FIXTURES, "as-npm.mjs"), SCRIPT]);
    child.kill("SIGKILL");
    await expect.poll(() => ids.filter(isAlive)).toEqual([]);
    await expect.poll(() => readdirSync(temporary)).toEqual([]);
    await closed;
    expect(said()).not.toContain("the next step");
  });

  test("when it comes to its end", async () => {
    const { closed, ids, said } = await started(2, [SCRIPT, "ends"]);
    expect(await closed).toEqual([0, null]);
    expect(said()).toContain(`left behind, killed: ${ids.at(-1)} sleep 600`);
    expect(ids.filter(isAlive)).toEqual([]);
    expect(readdirSync(temporary)).toEqual([]);
  });
});

test("a run of tests that is killed takes along what its tests have started, and its folder", async () => {
  const { child, ids } = await started(3, [VITEST, "run", `--root=${FIXTURES}`]);
  child.kill("SIGKILL");
  await expect.poll(() => ids.filter(isAlive)).toEqual([]);
  await expect.poll(() => readdirSync(temporary)).toEqual([]);
});

test("what runs under a guard starts no guard of its own", async () => {
  const { child, closed, ids } = await started(3, [SCRIPT]);
  const [, inner = 0] = ids;
  const environment = readFileSync(`/proc/${inner}/environ`, "utf8").split("\0");
  const TMPDIR = environment.find((one) => one.startsWith("TMPDIR="))?.slice("TMPDIR=".length);
  const nested = await started(3, [SCRIPT], { TMPDIR });
  nested.child.kill("SIGKILL");
  await once(nested.child, "exit");
  expect(nested.ids.filter((id) => id !== nested.child.pid).every(isAlive)).toBe(true);
  child.kill("SIGKILL");
  await closed;
  await expect.poll(() => nested.ids.filter(isAlive)).toEqual([]);
});
