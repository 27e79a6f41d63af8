import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner, lines } from "@fairlead/kernel";
import { afterAll, describe, expect, test } from "vitest";
import { freePort } from "./support/free-port.ts";

const bundle = join(import.meta.dirname, "..", "dist", "main.js");
const FOLDERS: string[] = [];
afterAll(() => Promise.all(FOLDERS.map((dir) => rm(dir, { recursive: true }))));

async function folder(...fifos: readonly string[]): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "fairlead-blocked-"));
  FOLDERS.push(dir);
  await mkdir(join(dir, "state"));
  for (const fifo of fifos) await createRunner().run(["mkfifo", join(dir, fifo)]);
  return dir;
}

/** Runs the agent, sends SIGTERM when a line says so, and gives what it logged when it has ended with code 0. */
async function untilStopped(
  dir: string,
  flags: readonly string[],
  when: (line: string) => boolean,
  as: readonly string[] = [],
): Promise<string> {
  const common = ["--proxy-mode=userspace", "--userspace-only", `--state-dir=${join(dir, "state")}`, "-v=2"];
  const port = `--metrics-bind-address=127.0.0.1:${await freePort()}`;
  const script = 'echo "$$"; exec "$@" 2>&1';
  const argv = ["sh", "-c", script, "sh", ...as, process.execPath, bundle, ...common, port, ...flags] as const;
  const log: string[] = [];
  let stopped = false;
  for await (const line of lines(createRunner().stream(argv, { timeoutMs: 0 }))) {
    log.push(line);
    if (stopped || !when(line)) continue;
    stopped = true;
    process.kill(as.length === 0 ? Number(log[0]) : await childOf(Number(log[0])), "SIGTERM");
  }
  return log.join("\n");
}

async function childOf(pid: number): Promise<number> {
  return Number(await readFile(`/proc/${pid}/task/${pid}/children`, "utf8"));
}

const starts = (line: string) => line.includes("Fairlead serves on local ports");

describe("files that block", () => {
  test("a FIFO in place of a state file is reported, and services are served without it", async () => {
    const dir = await folder("state/ownership.json", "state/networks.json");
    const flags = [`--manifests=${dir}`, "--exclude-cidrs-from=calico-ippools"];
    const log = await untilStopped(dir, flags, (line) => line.startsWith("SERVICE"));
    expect(log).toMatch(/ownership\.json" reason="it is not a regular file"/);
    expect(log).toMatch(/networks\.json" reason="it is not a regular file"/);
  });

  test.each([
    ["", []],
    [", also the first process of a container", ["unshare", "-r", "-p", "-f", "--kill-child"]],
  ])("SIGTERM ends a start that waits for a file%s", async (_who, as) => {
    const dir = await folder("kubeconfig");
    expect(await untilStopped(dir, [`--kubeconfig=${join(dir, "kubeconfig")}`], starts, as)).toContain("SIGTERM");
  });
});
