import { expect, test } from "vitest";
import { dump } from "../../src/netlink/dump.ts";
import { done, message, result, scripted } from "./scripted.ts";

const ENOMEM = 12;
const EPERM = 1;
const one = message(0x101, Buffer.alloc(0));

/** The end of a dump, with what it returned. */
function ended(errno: number): Buffer {
  const bytes = Buffer.from(done);
  bytes.writeInt32LE(-errno, 16);
  return bytes;
}

/** An answer to a request that nothing waits for anymore. */
function stale(of: Buffer): Buffer {
  const bytes = Buffer.from(of);
  bytes.writeUInt32LE(0xfffffff0, 8);
  return bytes;
}

async function listed(...datagrams: readonly Buffer[]): Promise<number> {
  const socket = await scripted(...datagrams).open();
  let taken = 0;
  await dump(socket, message(0x301, Buffer.alloc(0)), "listing things", () => {
    taken += 1;
  });
  return taken;
}

test("a dump that ends with an error is no listing", async () => {
  expect(await listed(one, one, ended(0))).toBe(2);
  await expect(listed(one, one, ended(ENOMEM))).rejects.toThrow(/listing things.*ENOMEM/);
});

test("what is left of an earlier request is no part of a listing, nor its end", async () => {
  expect(await listed(stale(one), stale(result(EPERM)), one, stale(done), one, done)).toBe(2);
  expect(await listed(Buffer.concat([stale(done), one, stale(one)]), done)).toBe(1);
});
