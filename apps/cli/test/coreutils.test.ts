import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { machine, release, tmpdir } from "node:os";
import { join } from "node:path";
import { CommandError, type Runner } from "@fairlead/kernel";
import { afterAll, beforeAll, expect, test } from "vitest";
import { printedHere, withCoreutils } from "../src/node/coreutils.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fairlead-"));
  await writeFile(join(folder, "a"), "1\n");
  await symlink("a", join(folder, "b"));
});
afterAll(() => rm(folder, { recursive: true }));

test.each<[string, string, string]>([
  ["cat", "a", "1\n"],
  ["ls", "", "a\nb\n"],
  ["readlink", "b", "a\n"],
])("%s %s prints what the program itself would", async (program, name, printed) => {
  expect(await printedHere([program, join(folder, name)])).toEqual({ stdout: printed, stderr: "" });
});

test("readlink -v is the same", async () => {
  expect((await printedHere(["readlink", "-v", join(folder, "b")])).stdout).toBe("a\n");
});

test("uname -rm is the kernel and the machine", async () => {
  expect((await printedHere(["uname", "-rm"])).stdout).toBe(`${release()} ${machine()}\n`);
});

test.each<[string, string, object]>([
  ["cat", "none", { reason: "exit", exitCode: 1, stderr: expect.stringMatching(/^cat: .*no such file/) }],
  ["readlink", "a", { reason: "exit", exitCode: 1, stderr: expect.stringMatching(/^readlink: /) }],
  ["sort", "a", { reason: "not-found" }],
])("%s %s fails as the program would", async (program, name, failure) => {
  await expect(printedHere([program, join(folder, name)])).rejects.toMatchObject(failure);
});

test("where the programs are there they are used, and their failures are theirs", async () => {
  const failing: Runner = {
    run: async (argv) => {
      if (argv[1] === "denied") throw new CommandError({ argv, reason: "exit", exitCode: 1, stderr: "denied" });
      return { stdout: "theirs", stderr: "" };
    },
    stream: () => expect.unreachable(),
  };
  const runner = withCoreutils(failing, () => expect.unreachable());
  expect((await runner.run(["cat", "a"])).stdout).toBe("theirs");
  await expect(runner.run(["cat", "denied"])).rejects.toMatchObject({ stderr: "denied" });
});
