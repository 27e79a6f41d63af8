import { AttributeWriter } from "@fairlead/netfilter/netlink";
import { nftNumbers } from "@fairlead/netfilter/nft";
import { expect, test } from "vitest";
import type { TransactionSocket } from "../../src/netlink/socket.ts";
import { openNftables } from "../../src/nftables/open.ts";
import { answered, done, message } from "../netlink/scripted.ts";

const { DATA_VALUE, ELEMENT, ELEMENTS, LIST_ITEM, MESSAGES, SET, SUBSYSTEM, TABLE } = nftNumbers;

function reply(type: number, write: (to: AttributeWriter) => void): Buffer {
  const attributes = new AttributeWriter();
  write(attributes);
  return message((SUBSYSTEM << 8) | type, attributes.bytes());
}

const table = reply(MESSAGES.newTable, (to) => to.text(TABLE.name, "t"));
const set = reply(MESSAGES.newSet, (to) =>
  to.text(SET.table, "t").text(SET.name, "s").u32(SET.flags, 0).u32(SET.keyType, 7).u32(SET.keyLength, 4),
);
const elements = (...keys: readonly string[]) =>
  reply(MESSAGES.newElement, (to) =>
    to.text(ELEMENTS.set, "s").nest(ELEMENTS.list, (list) => {
      for (const key of keys) {
        list.nest(LIST_ITEM, (item) => item.nest(ELEMENT.key, (value) => value.hex(DATA_VALUE, key)));
      }
    }),
  );

/** A kernel with one table and one set, whose elements it lists like this, one listing after the other. */
function kernelThatLists(...listings: readonly (readonly Buffer[])[]) {
  const left = [...listings];
  let answers: Buffer[] = [];
  let request: Buffer | undefined;
  const socket: TransactionSocket = {
    async send(bytes) {
      request = Buffer.from(bytes);
      const asked = request.readUInt8(4);
      if (asked === MESSAGES.getTable) answers = [table];
      else if (asked === MESSAGES.getSet) answers = [set, done];
      else if (asked === MESSAGES.getElement) answers = [...(left.shift() ?? []), done];
      else answers = [done];
    },
    async receive(into) {
      const next = answers.shift();
      if (next === undefined) throw Object.assign(new Error("nothing to read"), { code: "EAGAIN" });
      return into.subarray(0, answered(next, request).copy(into));
    },
    close: async () => {},
    makeRoom: (bytes) => bytes,
  };
  return { open: async () => socket, unread: () => left.length };
}

const [A, B, C] = ["0a000001", "0a000002", "0a000003"];

test("a listing in which an element stands twice is read again: another one is missing from it", async () => {
  const kernel = kernelThatLists([elements(A, B), elements(B)], [elements(A, B), elements(C)]);
  const nft = await openNftables({ open: kernel.open });
  const read = await nft.table("ip", "t");
  expect([...(read?.sets.get("s")?.elements.keys() ?? [])]).toEqual([A, B, C]);
  expect(kernel.unread()).toBe(0);
});

test("a set that changes all the time is an error that names it", async () => {
  const kernel = kernelThatLists(...Array.from({ length: 99 }, () => [elements(A), elements(A)]));
  const nft = await openNftables({ open: kernel.open });
  await expect(nft.table("ip", "t")).rejects.toThrow("netlink: set ip t s changes faster than it can be read");
});
