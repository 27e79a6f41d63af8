import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
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
