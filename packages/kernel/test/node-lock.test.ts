import { createServer } from "node:net";
import { expect, test } from "vitest";
import { acquireNodeLock, createRunner, NodeLockHeldError, nodeLockProcess } from "../src/index.ts";

const name = (test: string) => `fairlead-test-${process.pid}-${test}`;
const version = "1.2.3";
const startedAt = Date.UTC(2030, 0, 1);

test("the second is told who holds it; released, it can be had", async () => {
  const lock = await acquireNodeLock({ version, startedAt, name: name("two") });
  const error = await acquireNodeLock({ version, startedAt, name: name("two") }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(NodeLockHeldError);
  expect(error).toMatchObject({
    holder: { pid: process.pid, startedAt: "2030-01-01T00:00:00.000Z", version },
    message: `another agent works on this node: process ${process.pid} (version 1.2.3, running since 2030-01-01T00:00:00.000Z)`,
  });
  await lock.release();
  await (await acquireNodeLock({ version, startedAt, name: name("two") })).release();
});

test("the process that holds it is found by its socket", async () => {
  expect(await nodeLockProcess(name("whose"))).toBeUndefined();
  const lock = await acquireNodeLock({ version, startedAt, name: name("whose") });
  expect(await nodeLockProcess(name("whose"))).toBe(process.pid);
  await lock.release();
  expect(await nodeLockProcess(name("whose"))).toBeUndefined();
});

test("kill -9 frees it", async () => {
  const script = `
    import { acquireNodeLock } from "@fairlead/kernel";
    await acquireNodeLock({ version: "x", startedAt: 0, name: process.argv[1] });
    console.log("held");
    setInterval(() => {}, 1000);`;
  const options = ["--no-warnings", "--conditions=@fairlead/source", "--input-type=module", "-e", script, name("kill")];
  for await (const _ of createRunner().stream([process.execPath, ...options])) {
    await expect(acquireNodeLock({ version, startedAt, name: name("kill") })).rejects.toMatchObject({
      holder: { version: "x" },
    });
    break; // kills it with SIGKILL
  }
  await (await acquireNodeLock({ version, startedAt, name: name("kill") })).release();
});

test.for(["nothing\n", "{}\n", '{"pid":"1"}\n', "null\n", "", "x".repeat(10_000)])(
  "a stranger who says %s",
  async (answer) => {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.end(answer);
    });
    await new Promise<void>((resolve) => server.listen(`\0${name("stranger")}`, resolve));
    await expect(acquireNodeLock({ version, startedAt, name: name("stranger") })).rejects.toMatchObject({
      holder: undefined,
      message: "another agent works on this node: it gives no answer",
    });
    await new Promise((resolve) => server.close(resolve));
  },
);
