import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CommandError, createRunner, lines } from "@fairlead/kernel";
import { service } from "@fairlead/testkit";
import { AGENT_NODE_OPTIONS } from "@fairlead/tooling/agent-node";
import { afterAll, expect, test } from "vitest";

/** Node's inspector runs whatever it is told by anybody who reaches 127.0.0.1: never in this process. */
const bundle = join(import.meta.dirname, "..", "dist", "main.js");
const FOLDERS: string[] = [];
afterAll(() => Promise.all(FOLDERS.map((dir) => rm(dir, { recursive: true }))));

async function folder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "fairlead-inspector-"));
  FOLDERS.push(dir);
  return dir;
}

const flags = (dir: string) => ["--proxy-mode=userspace", "--userspace-only", `--manifests=${dir}`, "--state-dir="];

/** Sockets of a process that listen, by their inodes. */
async function listening(pid: number): Promise<readonly string[]> {
  const files = await readdir(`/proc/${pid}/fd`);
  const links = await Promise.all(files.map((file) => readlink(`/proc/${pid}/fd/${file}`).catch(() => "")));
  const tables = await Promise.all(["tcp", "tcp6"].map((table) => readFile(`/proc/${pid}/net/${table}`, "utf8")));
  // sl, local address, remote address, state (0A: LISTEN), …, inode
  const inodes = [...tables.join("\n").matchAll(/^ *\d+: \S+ \S+ 0A \S+ \S+ \S+ +\d+ +\d+ (\d+)/gm)];
  return inodes.flatMap(([, inode = ""]) => (links.includes(`socket:[${inode}]`) ? [inode] : []));
}

/** A service without endpoints: the agent tells of it and opens nothing. */
const web = JSON.stringify(service("web", { clusterIPs: ["10.96.0.10"], ports: [{ port: 80 }] }));

test.each([
  ["as the image starts it", AGENT_NODE_OPTIONS],
  ["by node with nothing said", []],
])("SIGUSR1 opens no inspector: %s", async (_how, options) => {
  const dir = await folder();
  // Should it open after all, it takes no port that another test listens on.
  const node = [process.execPath, "--inspect-port=0", ...options] as const;
  const script = 'echo "$$"; exec "$@" 2>&1';
  const run = ["sh", "-c", script, "sh", ...node, bundle, ...flags(dir)] as const;
  const said: string[] = [];
  let before: readonly string[] = [];
  for await (const line of lines(createRunner().stream(run, { timeoutMs: 0 }))) {
    said.push(line);
    const pid = Number(said[0]);
    if (line.startsWith("SERVICE") && before.length === 0) {
      before = await listening(pid);
      process.kill(pid, "SIGUSR1");
      // It goes on, and has had the signal when it tells of what came after it.
      await writeFile(join(dir, "web.json"), web);
    }
    if (!line.startsWith("default/web")) continue;
    expect(await listening(pid)).toEqual(before);
    process.kill(pid, "SIGTERM");
  }
  expect(said.join("\n")).not.toContain("Debugger");
  expect(said.join("\n")).toContain("default/web");
});

test.each([
  ["an option", ["--inspect=127.0.0.1:0"], {}, "--inspect=127.0.0.1:0"],
  ["the environment", [], { NODE_OPTIONS: "--no-warnings --inspect=0" }, "NODE_OPTIONS=--no-warnings --inspect=0"],
] as const)("an inspector that is asked for by %s is refused", async (_by, options, env, named) => {
  const dir = await folder();
  const ended = createRunner({ env }).run([process.execPath, ...options, bundle, ...flags(dir)]);
  const error = await ended.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(CommandError);
  expect(error).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(`${named}: `) });
});
