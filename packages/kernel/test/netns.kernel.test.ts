import { access, readdir, readFile, readlink } from "node:fs/promises";
import { afterEach, expect, test } from "vitest";
import { createRunner } from "../src/index.ts";
import { createNamespace, inside, type NetworkNamespace } from "../src/netns/index.ts";
import { kernelSuite } from "./kernel-test.ts";

/** A specifier that any folder finds. */
const NETNS = JSON.stringify(new URL("../src/netns/index.ts", import.meta.url).href);

const MADE: NetworkNamespace[] = [];
afterEach(async () => {
  for (const namespace of MADE.splice(0)) await namespace.dispose();
});

async function make(...args: Parameters<typeof createNamespace>): Promise<NetworkNamespace> {
  const namespace = await createNamespace(...args);
  MADE.push(namespace);
  return namespace;
}

kernelSuite("network namespace", () => {
  test("has its own loopback, up, and no way out", async () => {
    const namespace = await make();
    const runner = createRunner({ prefix: namespace.argvPrefix });
    expect(await readlink(`/proc/${namespace.pid}/ns/net`)).not.toBe(await readlink("/proc/self/ns/net"));
    const { stdout } = await runner.run(["ip", "-json", "link"]);
    expect(JSON.parse(stdout)).toMatchObject([{ ifname: "lo", flags: expect.arrayContaining(["UP"]) }]);
    expect((await runner.run(["ip", "route"])).stdout).toBe("");
  });

  test.runIf(process.getuid?.() === 0)("a whole one takes along what runs and what is mounted in it", async () => {
    const namespace = await make({ whole: true });
    const runner = createRunner({ prefix: namespace.argvPrefix });
    const start = "mount -t tmpfs none /mnt && { setsid sleep 600 >/dev/null 2>&1 & } && ls -l /proc/$!/ns/pid";
    await runner.run(["sh", "-c", start]);
    const space = await readlink(`/proc/${namespace.pid}/ns/pid`);
    expect(await processesIn(space)).toHaveLength(2);
    expect(await readFile("/proc/self/mounts", "utf8")).not.toContain("/mnt tmpfs");
    await namespace.dispose();
    expect(await processesIn(space)).toEqual([]);
  });

  test("is gone after dispose, which may be called twice", async () => {
    const namespace = await make();
    await namespace.dispose();
    await namespace.dispose();
    await expect(access(`/proc/${namespace.pid}/ns/net`)).rejects.toThrow();
  });

  test.each([{}, { user: true }])("%j: a process that got the number of its holder is not entered", async (options) => {
    const { pid, file, argvPrefix } = await make(options);
    const reused = (text: string) => text.replace(String(pid), String(process.pid));
    await createRunner({ prefix: argvPrefix }).run(["true"]);
    await expect(createRunner({ prefix: argvPrefix.map(reused) }).run(["true"])).rejects.toThrow(/nsenter/);
    await expect(inside({ file: reused(file) }, async () => {})).rejects.toThrow();
  });

  test("goes with the process that made it, killed with SIGKILL", async () => {
    const script =
      `import { createNamespace } from ${NETNS};` +
      "const { pid } = await createNamespace();" +
      "console.log(pid); setInterval(() => {}, 1000);";
    const node = [process.execPath, "--conditions=@fairlead/source", "--input-type=module", "-e", script] as const;
    const parent = createRunner().stream(node, { timeoutMs: 0 });
    let pid = 0;
    for await (const piece of parent) {
      pid = Number(piece);
      break; // leaving the loop kills the process with SIGKILL
    }
    expect(pid).toBeGreaterThan(1);
    await expect
      .poll(() =>
        readlink(`/proc/${pid}/ns/net`).then(
          () => "there",
          () => "gone",
        ),
      )
      .toBe("gone");
  });

  test("keeps no process from ending that forgot it", async () => {
    const script = `import { createNamespace } from ${NETNS}; const { pid } = await createNamespace(); console.log(pid);`;
    const options = ["--conditions=@fairlead/source", "--input-type=module", "-e", script];
    const { stdout } = await createRunner({ timeoutMs: 0 }).run([process.execPath, ...options]);
    await expect
      .poll(() =>
        readlink(`/proc/${Number(stdout)}/ns/net`).then(
          () => "there",
          () => "gone",
        ),
      )
      .toBe("gone");
  });
});

test("an impossible namespace says why", async () => {
  const nowhere: NetworkNamespace = {
    pid: 2 ** 22 + 1,
    file: `/proc/${2 ** 22 + 1}/ns/net`,
    as: "user",
    argvPrefix: [],
    env: {},
    dispose: async () => {},
    [Symbol.asyncDispose]: async () => {},
  };
  await expect(createNamespace({ alongside: nowhere })).rejects.toThrow(/cannot create a network namespace: .*nsenter/);
});

async function processesIn(space: string): Promise<readonly string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const spaces = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/ns/pid`).catch(() => "")));
  return pids.filter((_, index) => spaces[index] === space);
}
