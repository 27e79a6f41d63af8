import { copyFile, mkdir, mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
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

/** The agent by itself: no compiled code lies alongside it, as on a machine that has none. */
async function bareAgent(dir: string): Promise<string> {
  const bare = join(dir, "main.js");
  await copyFile(bundle, bare);
  return bare;
}

/** Runs the agent, sends SIGTERM when a line says so, and gives what it logged when it has ended with code 0. */
async function untilStopped(
  dir: string,
  flags: readonly string[],
  when: (line: string) => boolean,
  { as = [], agent = bundle }: { readonly as?: readonly string[]; readonly agent?: string } = {},
): Promise<string> {
  const common = ["--proxy-mode=userspace", "--userspace-only", `--state-dir=${join(dir, "state")}`, "-v=2"];
  const port = `--metrics-bind-address=127.0.0.1:${await freePort()}`;
  const argv = [...WITH_ID, ...as, process.execPath, agent, ...common, port, ...flags] as const;
  const log: string[] = [];
  let stopped = false;
  for await (const line of lines(createRunner().stream(argv, { timeoutMs: 0 }))) {
    log.push(line);
    if (stopped || !when(line)) continue;
    stopped = true;
    await terminate(Number(log[0]), as);
  }
  return log.join("\n");
}

/** Its first line is the process's id. */
const WITH_ID = ["sh", "-c", 'echo "$$"; exec "$@" 2>&1', "sh"] as const;

/** @param as what the agent runs behind; the process with that id is its parent */
async function terminate(id: number, as: readonly string[]): Promise<void> {
  process.kill(as.length === 0 ? id : await childOf(id), "SIGTERM");
}

async function childOf(pid: number): Promise<number> {
  return Number(await readFile(`/proc/${pid}/task/${pid}/children`, "utf8"));
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
      const agent = await bareAgent(dir);
      const flags = [`--kubeconfig=${join(dir, "kubeconfig")}`];
      expect(await untilStopped(dir, flags, starts, { as, agent })).toContain("SIGTERM");
    },
  );

  test.each(WHO)("SIGTERM ends a start that waits for its configuration%s", async (_who, as) => {
    const dir = await folder("config");
    const config = join(dir, "config");
    const argv = [...WITH_ID, ...as, process.execPath, bundle, `--config=${config}`] as const;
    const said = lines(createRunner().stream(argv, { timeoutMs: 0 }));
    const id = Number((await said.next()).value);
    // It opens as soon as somebody reads, who now waits for text.
    await using _writer = await open(config, "w");
    await terminate(id, as);
    await expect(said.next()).rejects.toThrow(/exit code 143|killed by SIGTERM/);
  });

  test("a configuration may come from a pipe", async () => {
    const dir = await folder("config");
    const config = join(dir, "config");
    const argv = [process.execPath, bundle, `--config=${config}`, `--write-config-to=${join(dir, "written")}`] as const;
    const ended = createRunner().run(argv, { timeoutMs: 0 });
    await writeFile(
      config,
      "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n",
    );
    await ended;
    expect(await readFile(join(dir, "written"), "utf8")).toContain("mode: nftables");
  });
});
