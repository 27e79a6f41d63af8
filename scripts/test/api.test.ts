import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";

const run = promisify(execFile);
const api = (...args: readonly string[]) =>
  run(process.execPath, [join(import.meta.dirname, "../api.mjs"), ...args]).then(
    () => ({ code: 0, stderr: "" }),
    ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
  );

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "fairlead-api-"));
  await mkdir(join(dir, "dist"));
  const exports = {
    ".": { types: "./dist/index.d.ts", default: "./dist/index.js" },
    "./package.json": "./package.json",
  };
  await writeFile(join(dir, "package.json"), JSON.stringify({ name: "@x/y", publishConfig: { exports } }));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** As the bundler leaves it: what entries share has a name with a hash. */
const built = async (hash: string, shared: string) => {
  await writeFile(join(dir, "dist/index.d.ts"), `/** Says. */\nexport { A } from './shared-${hash}.js';\n`);
  await rm(join(dir, "dist/shared-AAAAAAAA.d.ts"), { force: true });
  await writeFile(join(dir, `dist/shared-${hash}.d.ts`), shared);
};

test("a changed type fails, a changed comment, hash or order does not", async () => {
  await built("AAAAAAAA", "interface A { b: string }\n");
  expect((await api(dir)).code).toBe(1);
  expect((await api("--write", dir)).code).toBe(0);
  expect((await api(dir)).code).toBe(0);
  await built("BBBBBBBB", "/** Another word. */\ninterface A { b: string }\n");
  expect((await api(dir)).code).toBe(0);
  await built("CCCCCCCC", "interface A { b: string }\ninterface B {}\n");
  expect((await api("--write", dir)).code).toBe(0);
  await built("DDDDDDDD", "interface B {}\ninterface A { b: string }\n");
  expect((await api(dir)).code).toBe(0);
  await built("EEEEEEEE", "interface A { b: string }\n");
  expect((await api(dir)).code).toBe(1);
  await built("BBBBBBBB", "interface A { b: string }\n");
  expect((await api("--write", dir)).code).toBe(0);
  await built("BBBBBBBB", "interface A { b: number }\n");
  const { code, stderr } = await api(dir);
  expect(code).toBe(1);
  expect(stderr).toContain("- interface A { b: string }\n+ interface A { b: number }\nIf that is meant: pnpm api");
  expect((await api()).code).toBe(2);
});
