import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isRunning, processId } from "@fairlead/lab/support/processes";
import { ownPrefix } from "@fairlead/lab/support/run-inventory";
import { RUN_VARIABLE } from "@fairlead/lab/support/script";
import { execa } from "execa";
import { afterEach, beforeEach, expect, test } from "vitest";
import { newRunId, openRunFolder, takeDown } from "../src/command/run-folder.ts";

let parent: string;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), "fairlead-down-"));
});

afterEach(() => rm(parent, { recursive: true, force: true }));

/** A run whose process is gone; another one has its number now: this one. */
async function leftover(id: string): Promise<void> {
  const folder = join(parent, id);
  await mkdir(folder);
  await writeFile(
    join(folder, "run.json"),
    JSON.stringify({ owner: { pid: process.pid, startTime: "1" }, kept: false }),
  );
}

test("nothing there: says so", async () => {
  expect(await takeDown(parent, parent)).toEqual(["nothing is left of earlier runs"]);
});

test("a run at work is left alone", async () => {
  const folder = await openRunFolder(newRunId(), parent);
  expect(await takeDown(parent, parent)).toEqual([expect.stringContaining("left alone")]);
  expect(await readdir(parent)).toEqual([folder.id]);
});

test("a run whose process number somebody else has now is removed, its processes with it, and no others", async () => {
  const id = "fairlead-e2e-run-old";
  await leftover(id);
  const theirs = execa("sleep", ["60"], { env: { [RUN_VARIABLE]: id }, reject: false });
  const others = execa("sleep", ["60"], { env: { [RUN_VARIABLE]: `${id}er` }, reject: false });
  const other = await processId(others.pid ?? 0);
  expect(await takeDown(parent, parent)).toEqual([`${id}: removed, with 1 processes`]);
  expect((await theirs).signal).toBe("SIGKILL");
  expect(await isRunning(other)).toBe(true);
  expect(await readdir(parent)).toEqual([]);
  others.kill("SIGKILL");
  await others;
});

test("a run of pnpm e2e is found in the folder of that command", async () => {
  const command = join(parent, await ownPrefix("fairlead-e2e"));
  await mkdir(command);
  const { id } = await openRunFolder(newRunId(), command);
  expect(await takeDown(parent, parent)).toEqual([`${id}: at work (process ${process.pid}), left alone`]);
});

test("a folder that says nothing of its run is not touched", async () => {
  await mkdir(join(parent, "fairlead-e2e-run-strange"));
  await mkdir(join(parent, "somebody-else"));
  expect(await takeDown(parent, parent)).toEqual(["nothing is left of earlier runs"]);
  expect((await readdir(parent)).sort()).toEqual(["fairlead-e2e-run-strange", "somebody-else"]);
});

test("folders of processes that are gone are removed, also where programs are built; those of the living stay", async () => {
  const gone = `${process.pid}-1`;
  const cache = join(parent, "cache");
  await mkdir(join(cache, "programs", `.build-${gone}-abc`), { recursive: true });
  await mkdir(join(cache, "programs", `${await ownPrefix(".build")}-abc`));
  for (const name of ["e2e", "tests"]) await mkdir(join(parent, `fairlead-${name}-${gone}-abc`));
  await mkdir(join(parent, `${await ownPrefix("fairlead-e2e")}-abc`));
  expect(new Set(await takeDown(parent, cache))).toEqual(
    new Set(
      [`fairlead-e2e-${gone}-abc`, `fairlead-tests-${gone}-abc`, `.build-${gone}-abc`].map(
        (name) => `${name}: removed`,
      ),
    ),
  );
  expect((await readdir(parent)).sort()).toEqual(["cache", `${await ownPrefix("fairlead-e2e")}-abc`]);
  expect(await readdir(join(cache, "programs"))).toEqual([`${await ownPrefix(".build")}-abc`]);
});

test("tests have a temporary folder of their own, which is nobody's leftover", async () => {
  const [, pid, startTime = ""] = /\/fairlead(?:-tests)?-(\d+)-(\d+)$/.exec(tmpdir()) ?? [];
  expect(await isRunning({ pid: Number(pid), startTime })).toBe(true);
});
