import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FakeSysctl } from "../src/fake/index.ts";
import { createSysctl, type Sysctl } from "../src/index.ts";

let root = "";
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "fairlead-sysctl-"));
  await mkdir(join(root, "net"));
});
afterAll(() => rm(root, { recursive: true, force: true }));

const makers: readonly [string, (values: Record<string, string>) => Promise<Sysctl>][] = [
  ["in memory", async (values) => new FakeSysctl(values)],
  [
    "in files",
    async (values) => {
      for (const [key, value] of Object.entries(values)) await writeFile(join(root, key), `${value}\n`);
      return createSysctl(root);
    },
  ],
];

for (const [name, make] of makers) {
  describe(name, () => {
    test("set writes what is different", async () => {
      const sysctl = await make({ "net/a": "0" });
      expect(await sysctl.set("net/a", 1)).toEqual({ outcome: "changed", before: "0", value: "1" });
      expect(await sysctl.set("net/a", 1)).toEqual({ outcome: "kept", value: "1" });
      expect(await sysctl.read("net/a")).toBe("1");
    });

    test("a key that is not there", async () => {
      const sysctl = await make({});
      expect(await sysctl.read("net/none")).toBeUndefined();
      expect(await sysctl.set("net/none", 1)).toEqual({ outcome: "missing", reason: "sysctl net/none does not exist" });
    });
  });
}

test("values of several words compare by word", async () => {
  await writeFile(join(root, "net/range"), "1024\t65535\n");
  expect(await createSysctl(root).set("net/range", "1024 65535")).toMatchObject({ outcome: "kept" });
  expect(await readFile(join(root, "net/range"), "utf8")).toBe("1024\t65535\n");
});

test("in memory, read-only", async () => {
  const sysctl = new FakeSysctl({ "net/a": 0 });
  sysctl.readOnly = true;
  expect(await sysctl.set("net/a", 1)).toMatchObject({
    outcome: "refused",
    reason: expect.stringContaining("read-only"),
  });
  expect(await sysctl.set("net/a", 0)).toMatchObject({ outcome: "kept" });
});
