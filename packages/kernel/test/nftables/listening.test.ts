import { settled, VirtualClock } from "@fairlead/base/testing";
import { AttributeWriter } from "@fairlead/netfilter/netlink";
import { nftNumbers } from "@fairlead/netfilter/nft";
import { expect, test } from "vitest";
import { NetlinkError } from "../../src/index.ts";
import type { ListeningSocket } from "../../src/netlink/listening.ts";
import type { TransactionSocket } from "../../src/netlink/socket.ts";
import { openNftables } from "../../src/nftables/open.ts";
import type { NftablesNews, NftablesWatchOptions } from "../../src/nftables/watch.ts";
import { message } from "../netlink/scripted.ts";

const { GENERATION, MESSAGES, SUBSYSTEM, TABLE } = nftNumbers;
const OWN = 77;
const ENOBUFS = 105;

/** What the kernel reports of the socket with that number. */
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

/** Somebody watches a kernel that is at generation 8 and tells this, datagram by datagram. */
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

test("own transactions are not told, nor those of other tables", async () => {
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

test("after an error listening begins again, and what was missed is told as lost", async () => {
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
