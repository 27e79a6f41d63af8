import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { holdSettings, takeBack, weighRun } from "../src/provider/kind/machine.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "fairlead-limit-"));
  await writeFile(join(folder, "limit"), "128\n");
  await writeFile(join(folder, "panic"), "0\n");
});
afterEach(() => rm(folder, { recursive: true }));

const settings = () => ({
  root: folder,
  raised: { limit: 1024 },
  changed: ["panic", "not-there"],
  holders: join(folder, "holders"),
});
const now = async (name = "limit") => Number(await readFile(join(folder, name), "utf8"));

/** Two processes that are there for as long as the test, and a number that none has. */
const [ONE, OTHER, GONE] = [process.pid, process.ppid, 4_194_305];

test("a limit is raised for two runs and set back by the last of them", async () => {
  const lowerOne = await holdSettings(settings(), ONE);
  const lowerOther = await holdSettings(settings(), OTHER);
  expect(await now()).toBe(1024);
  await lowerOne();
  expect(await now()).toBe(1024);
  await lowerOther();
  expect(await now()).toBe(128);
  expect((await readdir(folder)).sort()).toEqual(["limit", "panic"]);
});

test("what a killed run left is set back by the next one", async () => {
  await holdSettings(settings(), GONE);
  const lower = await holdSettings(settings(), ONE);
  await lower();
  expect(await now()).toBe(128);
  expect((await readdir(folder)).sort()).toEqual(["limit", "panic"]);
});

test("what killed runs left is taken back: the limit, and groups without a process", async () => {
  await holdSettings(settings(), GONE);
  await mkdir(join(folder, "cpu/run-killed/docker"), { recursive: true });
  await mkdir(join(folder, "run-alive/run"), { recursive: true });
  await writeFile(join(folder, "run-alive/run/cgroup.procs"), `${ONE}\n`);
  const lines = ["run-killed: its control groups removed", "limit: as before"];
  expect(await takeBack("run-", folder, settings())).toEqual(lines);
  expect(await now()).toBe(128);
  expect((await readdir(folder)).sort()).toEqual(["cpu", "limit", "panic", "run-alive"]);
  expect(await readdir(join(folder, "cpu"))).toEqual([]);
});

test("what nodes change is set back as well", async () => {
  const release = await holdSettings(settings(), ONE);
  await writeFile(join(folder, "panic"), "10");
  await release();
  expect(await now("panic")).toBe(0);
});

test("a limit that is high enough stays as it is", async () => {
  await writeFile(join(folder, "limit"), "8192");
  const lower = await holdSettings(settings(), ONE);
  await lower();
  expect(await now()).toBe(8192);
});

const PLACEMENT = { v1: "3:cpuset:/\n2:cpu,cpuacct:/of/v1\n0::/of/v2\n", v2: "0::/of/v2\n" };

test.each([
  ["cpu", "cpu.shares", "32768", PLACEMENT.v1, "cpu/of/v1"],
  ["", "cpu.weight", "3200", PLACEMENT.v2, "of/v2"],
])("a run weighs as much as 32 programs, in hierarchy '%s'", async (hierarchy, file, weight, placement, before) => {
  const read = (...path: readonly string[]) => readFile(join(folder, ...path), "utf8");
  await mkdir(join(folder, before), { recursive: true });
  const putBack = await weighRun("id", folder, placement);
  expect(await read(hierarchy, "id", file)).toBe(weight);
  expect(await read(hierarchy, "id/run/cgroup.procs")).toBe(String(process.pid));
  await putBack();
  expect(await read(before, "cgroup.procs")).toBe(String(process.pid));
});
