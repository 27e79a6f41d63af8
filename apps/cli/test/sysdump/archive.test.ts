import { randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { type Header, pack } from "tar-stream";
import { describe, expect, test } from "vitest";
import { nodeFiles } from "../../src/commands/sysdump/nodes.ts";
import { ArchiveWriter, readArchive } from "../../src/sysdump/archive.ts";

test("an archive is never larger than it may be, and what does not fit is known", async () => {
  const archive = new ArchiveWriter("dump", new Date(0), 20_000);
  const large = randomBytes(12_000).toString("hex");
  expect(await archive.add("a.txt", large)).toBe(true);
  expect(await archive.add("b.txt", large)).toBe(false);
  expect(await archive.add("c.txt", "small")).toBe(true);
  const bytes = await archive.end({ "README.md": "read me" });
  expect(bytes.length).toBeLessThan(21_000);
  expect([...(await readArchive("x", bytes))]).toEqual([
    ["README.md", "read me"],
    ["a.txt", large],
    ["c.txt", "small"],
  ]);
});

test("a node that does not answer in time is missing in parts, not as a whole", async () => {
  const late = new AbortController();
  const never = new Promise<never>(() => {});
  const found = nodeFiles(
    {
      name: "node-a",
      state: () => never,
      page: async (path) => (path === "/proxyMode" ? "nftables" : never),
      log: async (previous) => (previous ? "" : "a line\n"),
    },
    late.signal,
  );
  setImmediate(() => late.abort());
  const { files, missing } = await found;
  expect([...files.keys()].sort()).toEqual(["nodes/node-a/agent/proxyMode.txt", "nodes/node-a/log.txt"]);
  const why = "no answer in time";
  expect(missing).toContainEqual({ what: "kernel", why });
  expect(missing).toContainEqual({ what: "agent /metrics", why });
});

type Entries = (readonly [Partial<Header> & Pick<Header, "name">, string?])[];

describe("an archive that somebody made to do harm", () => {
  const LIMITS = { bytes: 1 << 20, entries: 20 };
  const tar = (...entries: Entries) => {
    const packed = pack();
    for (const [header, content] of entries) packed.entry(header, content ?? "");
    packed.finalize();
    return buffer(packed);
  };
  const archive = async (...entries: Entries) => gzipSync(await tar(...entries));
  const INDEX: Entries[number] = [{ name: "dump/index.json" }, "{}"];
  const read = (bytes: Uint8Array) => readArchive("x.tar.gz", bytes, LIMITS);

  test.each([
    ["a bomb", async () => gzipSync(Buffer.alloc(64 << 20)), /unpacks to more than 1048576 bytes/],
    [
      "a bomb of many members",
      async () => Buffer.concat(Array(64).fill(gzipSync(Buffer.alloc(1 << 19)))),
      /unpacks to/,
    ],
    ["a file that is larger than all", () => archive([{ name: "dump/a" }, "x".repeat(2 << 20)]), /unpacks to more/],
    [
      "more entries than a cluster has",
      () => archive(...Array.from({ length: 21 }, (_, at) => [{ name: `dump/${at}` }] as const)),
      /more than 20 entries/,
    ],
    ["a file twice", () => archive(INDEX, INDEX), /has index.json twice/],
    ["cut off", async () => (await archive(INDEX)).subarray(0, 60), /unexpected end/i],
    ["a tar that is cut off", async () => gzipSync((await tar(INDEX)).subarray(0, 513)), /end of data/i],
    ["no tar", async () => gzipSync(randomBytes(2_048)), /not an archive/],
    ["no gzip", async () => Buffer.from("<html>"), /incorrect header check/],
  ])("%s: refused, and said why", async (_, bytes, why) => {
    await expect(read(await bytes())).rejects.toThrow(why);
  });

  test("links and devices are passed over: only what the archive itself holds is read", async () => {
    const bytes = await archive(
      [{ name: "dump/objects.json", type: "symlink", linkname: "/etc/passwd" }],
      [{ name: "dump/README.md", type: "link", linkname: "/etc/passwd" }],
      [{ name: "dump/nodes/a/state.json", type: "character-device", devmajor: 1, devminor: 5 }],
      INDEX,
    );
    expect([...(await read(bytes))]).toEqual([["index.json", "{}"]]);
  });

  test("a name that leads out of the folder is a name: nothing is written anywhere", async () => {
    const files = await read(await archive([{ name: "dump/../../index.json" }, "out"], INDEX));
    expect(files.get("index.json")).toBe("{}");
  });
});
