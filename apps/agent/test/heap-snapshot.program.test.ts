import { lstat, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { createRunner, lines } from "@fairlead/kernel";
import { afterAll, expect, test } from "vitest";
import { heapSnapshotSignal, writeHeapSnapshot } from "../src/start/engine.ts";
import { freePort } from "./support/free-port.ts";
import { recordedLog } from "./support/recorded-log.ts";

const bundle = join(import.meta.dirname, "..", "dist", "main.js");
const NAME = "fairlead-proxy.heapsnapshot";
const FOLDERS: string[] = [];
afterAll(() => Promise.all(FOLDERS.map((dir) => rm(dir, { recursive: true }))));

async function folder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "fairlead-snapshot-"));
  FOLDERS.push(dir);
  return dir;
}

test("SIGQUIT writes one heap snapshot into the state folder, for the own user only", async () => {
  const dir = await folder();
  const flags = ["--proxy-mode=userspace", "--userspace-only", "--profiling", "-v=2"];
  const where = [
    `--metrics-bind-address=127.0.0.1:${await freePort()}`,
    `--manifests=${dir}`,
    `--state-dir=${join(dir, "state")}`,
  ];
  const argv = [
    "sh",
    "-c",
    'umask 0; echo "$$"; exec "$@" 2>&1',
    "sh",
    process.execPath,
    bundle,
    ...flags,
    ...where,
  ] as const;
  const file = join(dir, "state", NAME);
  const log: string[] = [];
  for await (const line of lines(createRunner().stream(argv, { timeoutMs: 0 }))) {
    log.push(line);
    const pid = Number(log[0]);
    if (line.startsWith("SERVICE") || line.includes("Heap snapshot written")) process.kill(pid, "SIGQUIT");
    if (line.includes("Heap snapshot not written")) process.kill(pid, "SIGTERM");
  }
  expect(log.join("\n")).toMatch(/Heap snapshot written.*\n(.*\n)*.*Heap snapshot not written: the file exists/);
  expect((await stat(file)).mode & 0o7777).toBe(0o600);
  expect(JSON.parse(await readFile(file, "utf8"))).toHaveProperty("snapshot.meta");
});

test("a link in the file's place is not followed", async () => {
  const dir = await folder();
  await writeFile(join(dir, "target"), "as it was");
  await symlink(join(dir, "target"), join(dir, NAME));
  await expect(writeHeapSnapshot(dir, () => Readable.from(["{}"]))).rejects.toMatchObject({ code: "EEXIST" });
  expect(await readFile(join(dir, "target"), "utf8")).toBe("as it was");
  expect((await lstat(join(dir, NAME))).isSymbolicLink()).toBe(true);
});

test("what could not be written whole is removed", async () => {
  const dir = await folder();
  const broken = () =>
    Readable.from(
      (function* () {
        yield "{";
        throw new Error("broken off");
      })(),
    );
  await expect(writeHeapSnapshot(dir, broken)).rejects.toThrow("broken off");
  expect(await readdir(dir)).toEqual([]);
});

test("without enableProfiling the signal is not taken", () => {
  const before = process.listenerCount("SIGQUIT");
  heapSnapshotSignal({ enableProfiling: false, stateDir: "/nowhere" }, recordedLog());
  expect(process.listenerCount("SIGQUIT")).toBe(before);
});
