import { expect, test } from "vitest";
import { dump, list } from "../../src/netlink/requests.ts";
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

/** NLM_F_DUMP_INTR. */
const INTERRUPTED = 0x10;

function entry(name: string, flags = 0): Buffer {
  const bytes = message(0x101, Buffer.from(name));
  bytes.writeUInt16LE(flags, 6);
  return bytes;
}

function end(flags = 0): Buffer {
  const bytes = Buffer.from(done);
  bytes.writeUInt16LE(flags, 6);
  return bytes;
}

async function names(...datagrams: readonly Buffer[]) {
  const kernel = scripted(...datagrams);
  const socket = await kernel.open();
  const found = list(socket, message(0x301, Buffer.alloc(0)), "listing things", (bytes, { start, end: to }) => {
    const name = bytes.toString("utf8", start, to);
    return name === "skip" ? [] : [name];
  });
  return { found: await found.catch(String), asked: kernel.sent.length, unread: kernel.unread() };
}

test("a listing has each thing once, in its order", async () => {
  expect(await names(Buffer.concat([entry("aaaa"), entry("skip")]), entry("bbbb"), end())).toEqual({
    found: ["aaaa", "bbbb"],
    asked: 1,
    unread: 0,
  });
});

test.each([
  ["any message", [entry("aaaa"), entry("bbbb", INTERRUPTED), end()]],
  ["its end", [entry("aaaa"), end(INTERRUPTED)]],
])("a listing that the kernel marks as interrupted on %s is read again", async (_where, broken) => {
  expect(await names(...broken, ...broken, entry("cccc"), entry("aaaa"), end())).toEqual({
    found: ["cccc", "aaaa"],
    asked: 3,
    unread: 0,
  });
});

test("a listing that is interrupted again and again ends with an error that says so", async () => {
  const broken = Array.from({ length: 20 }, () => [entry("aaaa"), end(INTERRUPTED)]).flat();
  expect(await names(...broken)).toEqual({
    found: "Error: netlink: listing things: changed during each of 20 readings",
    asked: 20,
    unread: 0,
  });
});
