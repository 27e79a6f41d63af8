import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FakeRunner } from "../src/fake/index.ts";
import { createModules, isAtLeast, kernelVersion } from "../src/index.ts";

let root = "";
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "fairlead-modules-"));
  await mkdir(join(root, "sys/module/ip_set"), { recursive: true });
  await mkdir(join(root, "lib/modules/6.1.0"), { recursive: true });
  await writeFile(
    join(root, "lib/modules/6.1.0/modules.builtin"),
    "kernel/net/netfilter/xt_set.ko\nkernel/net/nf-nat.ko\n",
  );
});
afterAll(() => rm(root, { recursive: true, force: true }));

test("loaded, built in, to be loaded", async () => {
  const runner = new FakeRunner({ modprobe: "" });
  const modules = createModules(runner, { root, release: "6.1.0" });
  for (const there of ["ip_set", "ip-set", "xt_set", "nf_nat"]) expect(await modules.load(there)).toEqual({ ok: true });
  expect(runner.faults.calls).toEqual([]);
  expect(await modules.load("ip_vs")).toEqual({ ok: true });
  expect(runner.faults.calls.map(({ argv }) => argv)).toEqual([["modprobe", "--", "ip_vs"]]);
});

test("cannot be loaded: why", async () => {
  const stderr = "modprobe: FATAL: Module ip_vs not found in directory /lib/modules/6.1.0";
  const failing = createModules(new FakeRunner({ modprobe: { exitCode: 1, stderr } }), { root, release: "none" });
  expect(await failing.load("ip_vs")).toEqual({ ok: false, reason: `kernel module ip_vs is missing: ${stderr}` });
  const bare = createModules(new FakeRunner(), { root, release: "none" });
  expect(await bare.load("ip_vs")).toMatchObject({
    ok: false,
    reason: expect.stringContaining("apt-get install kmod"),
  });
});

test.for<[string, number, number]>([
  ["6.1.0-18-amd64", 6, 1],
  ["6.18.44-fc-v669", 6, 18],
  ["5.10", 5, 10],
  ["strange", 0, 0],
])("kernel release %s", ([release, major, minor]) => {
  expect(kernelVersion(release)).toEqual({ major, minor, release });
});

test("versions compare by number", () => {
  expect(isAtLeast(kernelVersion("5.10.0"), 5, 9)).toBe(true);
  expect(isAtLeast(kernelVersion("5.4.0"), 5, 13)).toBe(false);
  expect(isAtLeast(kernelVersion("6.0.0"), 5, 13)).toBe(true);
  expect(kernelVersion().major).toBeGreaterThan(2);
});
