import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { differences } from "../leaves-nothing.mjs";

test("what stays and what is gone is named with its kind, what is as it was is not", () => {
  const before = { interfaces: ["lo", "eth0"], files: ["/tmp/a"] };
  expect(differences(before, before)).toEqual([]);
  expect(differences(before, { interfaces: ["lo", "veth1"], files: ["/tmp/a", "/tmp/b"] })).toEqual([
    "interfaces: + veth1",
    "interfaces: - eth0",
    "files: + /tmp/b",
  ]);
});

test("a package is packed among temporary files, where a command that is killed leaves nothing", () => {
  const folder = mkdtempSync(join(tmpdir(), "fairlead-package-"));
  const programs = mkdtempSync(join(tmpdir(), "fairlead-programs-"));
  try {
    const program = (name: string, script: string) =>
      writeFileSync(join(programs, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    program("pnpm", 'cd "$3" && touch package-1.0.0.tgz');
    program("attw", 'ls "$1" && exit 7');
    const PATH = `${programs}:${process.env["PATH"]}`;
    const script = join(import.meta.dirname, "..", "lint-package.mjs");
    const { status, stdout, stderr } = spawnSync(process.execPath, [script], {
      cwd: folder,
      env: { ...process.env, PATH },
      encoding: "utf8",
    });
    const packed = stdout.trim();
    expect(stderr).toBe("");
    expect([status, packed.startsWith(`${tmpdir()}/`), packed.startsWith(folder)]).toEqual([7, true, false]);
    expect([readdirSync(folder), existsSync(packed)]).toEqual([[], false]);
  } finally {
    for (const one of [folder, programs]) rmSync(one, { recursive: true });
  }
});
