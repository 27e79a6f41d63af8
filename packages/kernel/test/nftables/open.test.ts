import { settled, VirtualClock } from "@fairlead/base/testing";
import { AttributeWriter } from "@fairlead/netfilter/netlink";
import { nftNumbers } from "@fairlead/netfilter/nft";
import { expect, test } from "vitest";
import { NetlinkError } from "../../src/index.ts";
import type { ListeningSocket } from "../../src/netlink/listening.ts";
import type { TransactionSocket } from "../../src/netlink/socket.ts";
import { openNftables } from "../../src/nftables/open.ts";
import type { NftablesNews, NftablesWatchOptions } from "../../src/nftables/watch.ts";
import { answered, done, message } from "../netlink/scripted.ts";

const { DATA_VALUE, ELEMENT, ELEMENTS, GENERATION, LIST_ITEM, MESSAGES, SET, SUBSYSTEM, TABLE } = nftNumbers;
const OWN = 77;
const ENOBUFS = 105;

function reported(port: number, type: number, write: (to: AttributeWriter) => void): Buffer {
  const attributes = new AttributeWriter();
  write(attributes);
  const bytes = message((SUBSYSTEM << 8) | type, attributes.bytes());
  bytes.writeUInt32LE(port, 12);
  return bytes;
}

const touched = (port: number, table: string) =>
  reported(port, MESSAGES.newElement, (to) => to.text(TABLE.name, table));
const ended = (port: number, id: number) =>
  reported(port, MESSAGES.newGeneration, (to) =>
    to.u32(GENERATION.id, id).u32(GENERATION.processId, 5).text(GENERATION.processName, "nft"),
  );

/** A watch on a kernel that is at generation 8 and reports this, datagram by datagram. */
async function watching(options: Partial<NftablesWatchOptions> = {}) {
  const queue: (Buffer | Error)[] = [];
  const opened: string[] = [];
  const timers = new VirtualClock();
  const problems: unknown[] = [];
  const news: NftablesNews[] = [];
  const transactions: TransactionSocket = {
    send: async () => void answers.push(ended(OWN, 8)),
    async receive(into) {
      const next = answers.shift();
      if (next === undefined) throw Object.assign(new Error("nothing to read"), { code: "EAGAIN" });
      return into.subarray(0, next.copy(into));
    },
    close: async () => {},
    makeRoom: (bytes) => bytes,
  };
  const answers: Buffer[] = [];
  const listening: ListeningSocket = {
    join: () => void opened.push("join"),
    leave: () => void opened.push("leave"),
    receive(into) {
      const next = queue.shift();
      if (next instanceof Error) throw next;
      return next && into.subarray(0, next.copy(into));
    },
    close: () => void opened.push("close"),
  };
  const stop = new AbortController();
  const nft = await openNftables({ open: async () => transactions, listen: async () => listening, timers });
  const done = (async () => {
    const wanted = { signal: stop.signal, onProblem: (error: unknown) => problems.push(error), ...options };
    for await (const one of nft.watch(wanted)) news.push(one);
  })();
  await settled();
  const notify = async (...datagrams: readonly (Buffer | Error)[]) => {
    queue.push(...datagrams);
    await timers.advance(100);
  };
  const end = async () => {
    stop.abort();
    await done;
  };
  return { notify, end, news, problems, opened, timers };
}

const by = (generation: number, ...names: readonly string[]): NftablesNews => ({
  kind: "transaction",
  generation,
  process: { id: 5, name: "nft" },
  tables: names.map((name) => ({ family: "ip", name })),
});

const lost = (...names: readonly string[]): NftablesNews => ({
  kind: "lost",
  tables: names.map((name) => ({ family: "ip", name })),
});

test("a transaction is put together from its messages, whatever datagrams they come in", async () => {
  const { notify, end, news, opened } = await watching();
  await notify(Buffer.concat([touched(1, "a"), touched(1, "b")]), touched(1, "a"));
  expect(news).toEqual([]);
  await notify(Buffer.concat([ended(1, 9), touched(2, "c"), ended(2, 10)]));
  await end();
  expect(news).toEqual([by(9, "a", "b"), by(10, "c")]);
  expect(opened).toEqual(["join", "close"]);
});

test("own transactions are not reported, nor those of other tables", async () => {
  const { notify, end, news } = await watching({ tables: ["a"] });
  await notify(touched(OWN, "a"), ended(OWN, 9), touched(1, "b"), ended(1, 10), touched(1, "a"), ended(1, 11));
  await end();
  expect(news).toEqual([by(11, "a")]);
});

test("what could not be kept is reported as lost, with the tables that its messages name", async () => {
  const { notify, end, news } = await watching();
  await notify(touched(1, "a"), new NetlinkError("reading", ENOBUFS), touched(1, "b"), ended(1, 9));
  await notify(touched(2, "c"), ended(2, 10));
  await end();
  expect(news).toEqual([lost("a", "b"), by(10, "c")]);
});

test("so it is where the end of a transaction does not come", async () => {
  const { notify, end, news } = await watching({ tables: ["a"] });
  await notify(new NetlinkError("reading", ENOBUFS), touched(1, "a"));
  await notify(touched(2, "a"), ended(2, 10));
  await end();
  expect(news).toEqual([lost("a"), by(10, "a")]);
});

test("what listening began with is no news, and the watch says when it has begun", async () => {
  let listening = 0;
  const { end, news } = await watching({ onListening: () => listening++ });
  await end();
  expect([listening, news]).toEqual([1, []]);
});

test("after an error listening begins again, and what was missed is reported as lost", async () => {
  const { notify, end, news, problems, opened, timers } = await watching();
  await notify(new Error("broken"));
  expect([news, opened]).toEqual([[], ["join", "close"]]);
  await timers.advance(1_000);
  await notify(touched(1, "a"), ended(1, 9), touched(1, "a"), ended(1, 10));
  await end();
  expect(problems).toEqual([new Error("broken")]);
  expect(news).toEqual([lost(), by(9, "a"), by(10, "a")]);
  expect(opened).toEqual(["join", "close", "join", "close"]);
});

test("bytes that are no message are passed over", async () => {
  const { notify, end, news } = await watching();
  await notify(Buffer.from([1, 2, 3]), Buffer.alloc(40), message(3, Buffer.alloc(4)), touched(1, "a"), ended(1, 9));
  await end();
  expect(news).toEqual([by(9, "a")]);
});

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
