import { chownSync } from "node:fs";
import { mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { acquireNodeLock, createRunner, lines, NodeLockHeldError } from "../src/index.ts";
import { createNamespace, type NetworkNamespace } from "../src/netns/index.ts";
import { kernelSuite, program } from "./kernel-test.ts";

const common = { version: "1.2.3", startedAt: Date.UTC(2030, 0, 1) };
let dir = "";
let proc = "";
let count = 0;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "fairlead-lock-"));
  // A network namespace of these tests' own, as far as the lock is concerned.
  proc = join(dir, "proc");
  await mkdir(join(proc, "self/ns"), { recursive: true });
  await writeFile(join(proc, "self/ns/net"), "");
});
afterAll(() => rm(dir, { recursive: true }));

function folder(): string {
  count += 1;
  return join(dir, String(count));
}

const acquire = (...folders: readonly string[]) => acquireNodeLock({ ...common, folders, proc });
const acquireNamed = (instance: string, path: string) =>
  acquireNodeLock({ ...common, instance, folders: [path], proc });

describe("in one process", () => {
  test("the second gets an error with the name of the holder; released, it can be had", async () => {
    const shared = folder();
    const lock = await acquire(shared);
    expect(lock.doubt).toBeUndefined();
    const error = await acquire(shared).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NodeLockHeldError);
    const holder = { pid: process.pid, startedAt: "2030-01-01T00:00:00.000Z", version: "1.2.3" };
    const who = `process ${process.pid} (version 1.2.3, running since 2030-01-01T00:00:00.000Z)`;
    const message = `another agent runs on this node: ${who} holds ${join(shared, "lock/agent.lock")}`;
    expect(error).toMatchObject({ holder, message });
    lock.release();
    (await acquire(shared)).release();
  });

  test("one of each name may be there, also where they share a folder", async () => {
    const shared = folder();
    const locks = [await acquire(shared), await acquireNamed("edge", shared), await acquireNamed("inner", shared)];
    expect(locks.map(({ doubt }) => doubt)).toEqual([undefined, undefined, undefined]);
    await expect(acquireNamed("edge", shared)).rejects.toThrow(NodeLockHeldError);
    await expect(acquire(shared)).rejects.toThrow(NodeLockHeldError);
    for (const lock of locks) lock.release();
    (await acquireNamed("edge", shared)).release();
  });

  test("only its user can open it, whatever the folder was before", async () => {
    const wide = folder();
    await mkdir(join(wide, "lock"), { recursive: true, mode: 0o777 });
    await writeFile(join(wide, "lock/agent.lock"), "", { mode: 0o666 });
    const lock = await acquire(wide);
    expect((await stat(join(wide, "lock"))).mode & 0o777).toBe(0o700);
    expect((await stat(join(wide, "lock/agent.lock"))).mode & 0o777).toBe(0o600);
    lock.release();
  });

  test("one shared folder is enough, and what was locked besides is free again", async () => {
    const [own, shared, other] = [folder(), folder(), folder()];
    const lock = await acquire(own, shared);
    await expect(acquire(other, shared)).rejects.toThrow(NodeLockHeldError);
    (await acquire(other)).release();
    lock.release();
  });

  test("a folder that cannot be used is skipped; without any the agent gets a problem, and goes on", async () => {
    const [good, file] = [folder(), folder()];
    await writeFile(file, "");
    const lock = await acquire("/proc/none", good);
    expect(lock.doubt).toBeUndefined();
    await expect(acquire(good)).rejects.toThrow(NodeLockHeldError);
    lock.release();
    const { doubt } = await acquire("/proc/none", file);
    expect(doubt).toMatch(/^cannot take the node's lock: ENOENT: .*\/proc\/none.*; E(?:EXIST|NOTDIR): /);
  });

  test("a FIFO in the lock's place is not read", async () => {
    const path = folder();
    await mkdir(join(path, "lock"), { recursive: true });
    await createRunner().run(["mkfifo", join(path, "lock/agent.lock")]);
    expect((await acquire(path)).doubt).toContain(`${join(path, "lock/agent.lock")}: is not a regular file`);
  });

  test.skipIf(process.geteuid?.() !== 0)("another user's folder is not used", async () => {
    const theirs = folder();
    await mkdir(join(theirs, "lock"), { recursive: true });
    chownSync(join(theirs, "lock"), 65_534, 65_534);
    expect((await acquire(theirs)).doubt).toContain(`${join(theirs, "lock")}: belongs to user 65534`);
  });

  test.each(["", "{}\n", '{"pid":"1"}\n', "null\n", "x".repeat(10_000)])("a holder that says %j", async (text) => {
    const shared = folder();
    const lock = await acquire(shared);
    await writeFile(join(shared, "lock/agent.lock"), text);
    await expect(acquire(shared)).rejects.toMatchObject({ holder: undefined, message: /: a process holds \// });
    lock.release();
  });
});

kernelSuite("in processes", () => {
  const ends: AbortController[] = [];
  let [here, elsewhere]: NetworkNamespace[] = [];

  beforeAll(async () => {
    [here, elsewhere] = [await createNamespace(), await createNamespace()];
  });
  afterAll(async () => {
    for (const end of ends) end.abort();
    await here?.dispose();
    await elsewhere?.dispose();
  });

  /** What it says; it lives until `end`, which kills it. */
  async function start(namespace: NetworkNamespace | undefined, name: string, ...args: readonly string[]) {
    const runner = createRunner({ prefix: namespace?.argvPrefix ?? [] });
    const said = lines(runner.stream(program(name, ...args), { timeoutMs: 0 }));
    const { value = "" } = await said.next();
    const end = new AbortController();
    end.signal.addEventListener("abort", () => void said.return(undefined));
    ends.push(end);
    return { said: value, kill: () => said.return(undefined) };
  }

  test("one in a network namespace; kill -9 frees it", async () => {
    const shared = folder();
    const first = await start(here, "lock-as-agent", shared);
    const [pid] = /^\d+/.exec(first.said) ?? [];
    expect(first.said).toBe(`${pid} held; doubt: undefined`);
    const second = await start(here, "lock-as-agent", shared);
    expect(second.said).toContain(`another agent runs on this node: process ${pid} (version 1.2.3, `);
    expect((await start(elsewhere, "lock-as-agent", shared)).said).toMatch(/ held; doubt: undefined$/);
    expect((await start(here, "lock-holder")).said).toBe(pid);
    await first.kill();
    expect((await start(here, "lock-holder")).said).toBe("undefined");
    expect((await start(here, "lock-as-agent", shared)).said).toMatch(/ held; doubt: undefined$/);
  });

  test("an agent that shares no folder is seen all the same", async () => {
    await using other = await createNamespace();
    const first = await start(other, "lock-as-agent", folder());
    const [pid] = /^\d+/.exec(first.said) ?? [];
    const second = await start(other, "lock-as-agent", folder());
    expect(second.said).toContain(`another agent runs on this node: process ${pid} (version 1.2.3, `);
    await first.kill();
  });

  test("a user that locks a file of their own in the same way keeps no agent from starting", async () => {
    await using other = await createNamespace();
    const theirs = folder();
    await mkdir(theirs);
    const anybody = await start(other, "lock-as-anybody", join(theirs, "agent.lock"));
    expect(anybody.said).toBe("locked true");
    expect((await start(other, "lock-holder")).said).toBe("undefined");
    const agent = await start(other, "lock-as-agent", folder());
    expect(agent.said).toMatch(/ held; doubt: a process outside this PID namespace holds an agent's lock$/);
    await anybody.kill();
    await agent.kill();
  });
});
