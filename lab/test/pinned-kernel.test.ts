import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { downloadPinned, PINNED } from "../src/qemu/pinned.ts";

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
