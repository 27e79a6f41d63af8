import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const MODULE = join(import.meta.dirname, "..", "idle-services.mjs");

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-idle-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A process that installs the package bird2 by a shell script, in which $policy is the policy's file. */
function installing(script: string): readonly string[] {
  const policy = join(dir, "policy-rc.d");
  const command = JSON.stringify(["sh", "-c", `policy=${policy} dir=${dir}; ${script}`]);
  const code = `import { installIdle } from ${JSON.stringify(MODULE)};
console.log(installIdle(["bird2"], ${command}, process.env, ${JSON.stringify(policy)}));`;
  return ["--input-type=module", "--eval", code];
}

test("services may not start while packages are installed, and the policy goes afterwards", () => {
  const { stdout } = spawnSync(process.execPath, installing('"$policy"; echo $? >$dir/answer'), { encoding: "utf8" });
  expect(stdout).toBe("true\n");
  expect(readFileSync(join(dir, "answer"), "utf8")).toBe("101\n");
  expect(existsSync(join(dir, "policy-rc.d"))).toBe(false);
});

test("what an installation that fails has said is shown", () => {
  const { stdout, stderr } = spawnSync(process.execPath, installing("echo no such package; false"), {
    encoding: "utf8",
  });
  expect(stdout).toBe("false\n");
  expect(stderr).toBe("no such package\n");
  expect(existsSync(join(dir, "policy-rc.d"))).toBe(false);
});

test("an installation whose process is killed goes on to its end, and the policy goes with it", async () => {
  const script = "touch $dir/begun; until [ -e $dir/go ]; do sleep 0.05; done; echo a word; touch $dir/done";
  const child = spawn(process.execPath, installing(script), { stdio: "ignore" });
  await expect.poll(() => existsSync(join(dir, "begun"))).toBe(true);
  child.kill("SIGKILL");
  await once(child, "close");
  expect(existsSync(join(dir, "policy-rc.d"))).toBe(true);
  writeFileSync(join(dir, "go"), "");
  await expect.poll(() => existsSync(join(dir, "policy-rc.d"))).toBe(false);
  expect(existsSync(join(dir, "done"))).toBe(true);
});
