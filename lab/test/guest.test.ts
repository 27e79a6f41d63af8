import { createHash } from "node:crypto";
import { availableParallelism } from "node:os";
import { duplexPair } from "node:stream";
import { expect, test } from "vitest";
import { remoteOver, shareOver } from "../src/provider/guest/remote.ts";
import { downloadPinned, PINNED } from "../src/qemu/kernel.ts";
import { coreOfNextGuest, coresIn } from "../src/uml/boot.ts";

/** Both ends of one connection, and what the guest's shares. */
function connected<T extends object>(shared: T) {
  const [here, there] = duplexPair();
  const progress: string[] = [];
  const notify = shareOver(there, async () => shared);
  return { opened: remoteOver<T>(here, (line) => progress.push(line)), notify, progress, here };
}

test("answers come to their calls, in any order", async () => {
  const first = Promise.withResolvers<string>();
  const { opened } = connected({ get: async (path: string) => (path === "/slow" ? first.promise : path) });
  const { get } = await opened;
  const slow = get("/slow");
  expect(await get("/fast")).toBe("/fast");
  first.resolve("at last");
  expect(await slow).toBe("at last");
});

test("what is thrown there is thrown here, with its message", async () => {
  const run = async () => {
    throw new Error("ip: no such device");
  };
  const { run: asked } = await connected({ run }).opened;
  await expect(asked()).rejects.toThrow("ip: no such device");
});

test("calls that wait fail when the guest ends, and so do later calls", async () => {
  const { opened, here } = connected({ state: () => new Promise(() => {}) });
  const { state } = await opened;
  const waiting = state();
  here.destroy();
  await expect(waiting).rejects.toThrow("the guest has ended");
  await expect(state()).rejects.toThrow("the guest has ended");
});

test("progress is not an answer", async () => {
  const { opened, notify, progress } = connected({ dispose: async () => null });
  const { dispose } = await opened;
  notify("Fairlead runs on every node");
  await dispose();
  expect(progress).toEqual(["Fairlead runs on every node"]);
});

test("objects that are given there are the same ones when they come back, with their data", async () => {
  const node = { name: "a1", zone: undefined, log: async () => "its log" };
  const startPod = async (wanted: { readonly node: typeof node; readonly labels?: object }) => {
    if (wanted.node !== node) throw new Error("it is another one");
    return { ...wanted, ask: async (line = "nothing") => `${wanted.node.name}: ${line}` };
  };
  const { nodes, startPod: start } = await connected({ nodes: [node], startPod }).opened;
  const [given] = nodes;
  if (given === undefined) throw new Error("no node was given");
  expect(await given.log()).toBe("its log");
  const pod = await start({ node: given, labels: { app: "web" } });
  expect(pod).toMatchObject({ node: { name: "a1" }, labels: { app: "web" } });
  expect(pod.node).toBe(given);
  expect([await pod.ask("who?"), await pod.ask()]).toEqual(["a1: who?", "a1: nothing"]);
  await expect(start({ node: { ...given } })).rejects.toThrow("it is another one");
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
