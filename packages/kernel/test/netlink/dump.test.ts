import { expect, test } from "vitest";
import { dump } from "../../src/netlink/dump.ts";
import { done, message, scripted } from "./scripted.ts";

const ENOMEM = 12;

/** The end of a dump, with what it returned. */
function ended(errno: number): Buffer {
  const bytes = Buffer.from(done);
  bytes.writeInt32LE(-errno, 16);
  return bytes;
}

async function listed(...datagrams: readonly Buffer[]): Promise<number> {
  const socket = await scripted(...datagrams).open();
  let taken = 0;
  await dump(socket, Buffer.alloc(0), "listing things", () => {
    taken += 1;
  });
  return taken;
}

test("a dump that ends with an error is no listing", async () => {
  const one = message(0x101, Buffer.alloc(0));
  expect(await listed(one, one, ended(0))).toBe(2);
  await expect(listed(one, one, ended(ENOMEM))).rejects.toThrow(/listing things.*ENOMEM/);
});
