import { copyFile, lstat, mkdir, open, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { createRunner } from "@fairlead/kernel";
import { describe, expect, test } from "vitest";
import { heapSnapshotSignal, writeHeapSnapshot } from "../src/start/engine.ts";
import { BUNDLE, emptyFolder, onLocalPorts, started } from "./support/bundle.ts";
import { recordedLog } from "./support/fake-node.ts";
import { freePort } from "./support/http.ts";

async function folder(...fifos: readonly string[]): Promise<string> {
  const dir = await emptyFolder();
  await mkdir(join(dir, "state"));
  for (const fifo of fifos) await createRunner().run(["mkfifo", join(dir, fifo)]);
  return dir;
}

/** Runs the agent, sends SIGTERM when a line says so, and gives what it logged when it has ended with code 0. */
async function untilStopped(
  dir: string,
  flags: readonly string[],
  when: (line: string) => boolean,
  { as = [], agent = BUNDLE }: { readonly as?: readonly string[]; readonly agent?: string } = {},
): Promise<string> {
  const common = ["--proxy-mode=userspace", "--userspace-only", `--state-dir=${join(dir, "state")}`, "-v=2"];
  const port = `--metrics-bind-address=127.0.0.1:${await freePort()}`;
  const log: string[] = [];
  let stopped = false;
  for await (const line of started(...as, process.execPath, agent, ...common, port, ...flags)) {
    log.push(line);
    if (stopped || !when(line)) continue;
    stopped = true;
    await terminate(Number(log[0]), as);
  }
  return log.join("\n");
}

/** @param as what the agent runs behind; the process with that id is its parent */
async function terminate(id: number, as: readonly string[]): Promise<void> {
  const child = async () => Number(await readFile(`/proc/${id}/task/${id}/children`, "utf8"));
  process.kill(as.length === 0 ? id : await child(), "SIGTERM");
}

const starts = (line: string) => line.includes("Fairlead serves on local ports");

/** As in a container, where signals that nothing handles do nothing. */
const FIRST_PROCESS = ["unshare", "-r", "-p", "-f", "--kill-child"] as const;
const WHO = [
  ["", []],
  [", also the first process of a container", FIRST_PROCESS],
] as const;

describe("files that block", () => {
  test("a FIFO in place of a state file is reported, and services are served without it", async () => {
    const dir = await folder("state/ownership.json", "state/networks.json");
    const flags = [`--manifests=${dir}`, "--exclude-cidrs-from=calico-ippools"];
    const log = await untilStopped(dir, flags, (line) => line.startsWith("SERVICE"));
    expect(log).toMatch(/ownership\.json" reason="it is not a regular file"/);
    expect(log).toMatch(/networks\.json" reason="it is not a regular file"/);
  });

  test.each(WHO)("SIGTERM ends a start that waits for a file%s", async (_who, as) => {
    const dir = await folder("kubeconfig");
    expect(await untilStopped(dir, [`--kubeconfig=${join(dir, "kubeconfig")}`], starts, { as })).toContain("SIGTERM");
  });

  test.each(WHO)(
    "SIGTERM ends a start that waits for a file on a machine without compiled code%s",
    async (_who, as) => {
      const dir = await folder("kubeconfig");
      // No compiled code lies alongside it.
      const agent = join(dir, "main.js");
      await copyFile(BUNDLE, agent);
      const flags = [`--kubeconfig=${join(dir, "kubeconfig")}`];
      expect(await untilStopped(dir, flags, starts, { as, agent })).toContain("SIGTERM");
    },
  );

  test.each(WHO)("SIGTERM ends a start that waits for its configuration%s", async (_who, as) => {
    const dir = await folder("config");
    const config = join(dir, "config");
    const said = started(...as, process.execPath, BUNDLE, `--config=${config}`);
    const id = Number((await said.next()).value);
    // It opens as soon as the agent reads, which now waits for text.
    await using _writer = await open(config, "w");
    await terminate(id, as);
    await expect(said.next()).rejects.toThrow(/exit code 143|killed by SIGTERM/);
  });

  test("a configuration may come from a pipe", async () => {
    const dir = await folder("config");
    const config = join(dir, "config");
    const argv = [process.execPath, BUNDLE, `--config=${config}`, `--write-config-to=${join(dir, "written")}`] as const;
    const ended = createRunner().run(argv, { timeoutMs: 0 });
    await writeFile(
      config,
      "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n",
    );
    await ended;
    expect(await readFile(join(dir, "written"), "utf8")).toContain("mode: nftables");
  });
});

const NAME = "fairlead-proxy.heapsnapshot";

test("SIGQUIT writes one heap snapshot into the state folder, for the own user only", async () => {
  const dir = await emptyFolder();
  const port = `--metrics-bind-address=127.0.0.1:${await freePort()}`;
  const flags = [...onLocalPorts(dir, join(dir, "state")), port, "--profiling", "-v=2"];
  const file = join(dir, "state", NAME);
  const log: string[] = [];
  for await (const line of started(process.execPath, BUNDLE, ...flags)) {
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
  const dir = await emptyFolder();
  await writeFile(join(dir, "target"), "as it was");
  await symlink(join(dir, "target"), join(dir, NAME));
  await expect(writeHeapSnapshot(dir, () => Readable.from(["{}"]))).rejects.toMatchObject({ code: "EEXIST" });
  expect(await readFile(join(dir, "target"), "utf8")).toBe("as it was");
  expect((await lstat(join(dir, NAME))).isSymbolicLink()).toBe(true);
});

test("what could not be written whole is removed", async () => {
  const dir = await emptyFolder();
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
