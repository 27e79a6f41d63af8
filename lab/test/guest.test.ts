import { createHash } from "node:crypto";
import { availableParallelism } from "node:os";
import { duplexPair } from "node:stream";
import { expect, test } from "vitest";
import { clusterCalls, startedCalls } from "../src/provider/guest/server.ts";
import { answerOver, askOver, type GuestCalls } from "../src/provider/guest/wire.ts";
import { downloadPinned, PINNED } from "../src/qemu/kernel.ts";
import { coreOfNextGuest, coresIn } from "../src/uml/boot.ts";

const noCluster = () => clusterCalls(new Promise(() => {}));

/** Both ends of one connection, the guest's with these answers. */
function connected(calls: Partial<GuestCalls>) {
  const [here, there] = duplexPair();
  const progress: string[] = [];
  const notify = answerOver(there, { ...noCluster(), ...calls });
  return { ask: askOver(here, (line) => progress.push(line)), notify, progress, here };
}

test("answers come to who asked, in whatever order", async () => {
  const first = Promise.withResolvers<string>();
  const { ask } = connected({
    agentGet: async (node, path) => (path === "/slow" ? first.promise : `${node} ${path}`),
  });
  const slow = ask("agentGet", "node-a", "/slow");
  expect(await ask("agentGet", "node-b", "/fast")).toBe("node-b /fast");
  first.resolve("at last");
  expect(await slow).toBe("at last");
});

test("what is thrown there is thrown here, with its message", async () => {
  const { ask } = connected({
    run: async () => {
      throw new Error("ip: no such device");
    },
  });
  await expect(ask("run", "node-a", ["ip", "link"])).rejects.toThrow("ip: no such device");
});

test("who waits is told when the guest ends, and so is who asks later", async () => {
  const { ask, here } = connected({});
  const waiting = ask("open");
  here.destroy();
  await expect(waiting).rejects.toThrow("the guest has ended");
  await expect(ask("state")).rejects.toThrow("the guest has ended");
});

test("progress is no answer", async () => {
  const { ask, notify, progress } = connected({ dispose: async () => {} });
  notify("Fairlead runs on every node");
  await ask("dispose");
  expect(progress).toEqual(["Fairlead runs on every node"]);
});

test("scripts that are started there go by names of their own", async () => {
  const stopped: string[] = [];
  const startScript = async (file: string, args: readonly string[] = []) => ({
    ready: `${file} is ready`,
    ask: async (line: string) => `${args.join()}: ${line}`,
    stop: async () => void stopped.push(args.join()),
  });
  const { ask } = connected(
    startedCalls(
      async () => ({}),
      async () => ({ startScript }),
    ),
  );
  const first = await ask("startPodScript", "a1", "kept.ts", ["one"]);
  const second = await ask("startPodScript", "a1", "kept.ts", ["two"]);
  expect(first.ready).toBe("kept.ts is ready");
  expect(await ask("askScript", second.name, "who?")).toBe("two: who?");
  expect(await ask("askScript", first.name, "who?")).toBe("one: who?");
  await ask("stopScript", first.name);
  expect(stopped).toEqual(["one"]);
  await expect(ask("startLocalInstance", "node-a", "edge")).rejects.toThrow("this cluster cannot start it");
  await expect(ask("removeLocalInstance", "node-a", "edge")).rejects.toThrow("nobody has started it");
});

test.each([
  ["0-1", [0, 1]],
  ["3", [3]],
  ["0-2,5,8-9", [0, 1, 2, 5, 8, 9]],
])("a process may run on %s", (list, cores) => {
  const status = `Name:\tnode\nCpus_allowed:\t3\nCpus_allowed_list:\t${list}\nMems_allowed_list:\t0\n`;
  expect(coresIn(status)).toEqual(cores);
});

test("guests of one process take the cores in turn", async () => {
  const turns = [await coreOfNextGuest(), await coreOfNextGuest(), await coreOfNextGuest()];
  expect(new Set(turns).size).toBe(Math.min(turns.length, availableParallelism()));
});

const bytes = Buffer.from("a kernel");
const pinned = { name: "linux-image-1", path: "pool/linux-image-1.deb", sha256: sha256(bytes) };

function sha256(of: Uint8Array): string {
  return createHash("sha256").update(of).digest("hex");
}

test("what the archive no longer has comes from its snapshot", async () => {
  const asked: string[] = [];
  const download = async (url: string) => {
    asked.push(url);
    if (asked.length === 1) throw new Error("HTTP 404");
    return bytes;
  };
  expect(await downloadPinned(pinned, download)).toBe(bytes);
  expect(asked.every((url) => url.endsWith("/pool/linux-image-1.deb"))).toBe(true);
});

test("what is not what is pinned is refused", async () => {
  const other = Buffer.from("something else");
  await expect(downloadPinned(pinned, async () => other)).rejects.toThrow(
    `SHA-256 is ${sha256(other)}, expected ${pinned.sha256}`,
  );
});

test.each(Object.values(PINNED))("$path is the package's", ({ name, path, sha256 }) => {
  expect(path.split("/").at(-1)?.startsWith(`${name}_`)).toBe(true);
  expect(sha256).toMatch(/^[\da-f]{64}$/);
});
