import { VirtualClock } from "@fairlead/base/testing";
import { AttributeWriter } from "@fairlead/netfilter/netlink";
import { type NftTable, nftNumbers } from "@fairlead/netfilter/nft";
import { expect, test } from "vitest";
import { NetlinkError } from "../../src/index.ts";
import { HeldTable } from "../../src/nftables/held-table.ts";
import { message } from "../netlink/scripted.ts";

const { CHAIN, FLAGS, GENERATION, MESSAGES, SUBSYSTEM } = nftNumbers;
const ENOBUFS = 105;
const IPV4 = 2;

function report(type: number, flags: number, write: (to: AttributeWriter) => void): Buffer {
  const attributes = new AttributeWriter();
  write(attributes);
  const bytes = message((SUBSYSTEM << 8) | type, attributes.bytes());
  bytes.writeUInt16LE(flags, 6);
  bytes[16] = IPV4;
  return bytes;
}

const chain = (name: string) =>
  report(MESSAGES.newChain, FLAGS.create, (to) => to.text(CHAIN.table, "kube-proxy").text(CHAIN.name, name));
const ended = (id: number) => report(MESSAGES.newGeneration, 0, (to) => to.u32(GENERATION.id, id));

/** A kernel at generation 8 whose table has been read once, and what of it is known after that. */
async function held() {
  const queue: (Buffer | Error)[] = [];
  const clock = new VirtualClock();
  const kernel = { generation: 8, readings: 0 };
  const whole: NftTable = { family: "ip", name: "kube-proxy", chains: new Map(), sets: new Map() };
  const table = new HeldTable({
    family: "ip",
    name: "kube-proxy",
    read: async () => {
      kernel.readings += 1;
      return whole;
    },
    generation: async () => kernel.generation,
    listen: async () => ({
      join: () => {},
      leave: () => {},
      receive(into) {
        const next = queue.shift();
        if (next instanceof Error) throw next;
        return next && into.subarray(0, next.copy(into));
      },
      close: () => {},
    }),
    clock,
  });
  await table.table();
  const chains = async (generation: number, ...datagrams: readonly (Buffer | Error)[]) => {
    kernel.generation = generation;
    queue.push(...datagrams);
    return [...((await table.table())?.chains.keys() ?? [])];
  };
  return { chains, kernel, clock };
}

test("the copy follows the messages, and takes nothing twice that it already has", async () => {
  const { chains, kernel } = await held();
  expect(await chains(9, chain("of a transaction before"), ended(8), chain("a"), ended(9))).toEqual(["a"]);
  expect(await chains(10, ended(10))).toEqual(["a"]);
  expect(kernel.readings).toBe(1);
});

test.each<[what: string, generation: number, datagrams: readonly (Buffer | Error)[]]>([
  ["events overflowed the buffer", 9, [new NetlinkError("reading", ENOBUFS), chain("a"), ended(9)]],
  ["a transaction is missing", 10, [chain("a"), ended(10)]],
  ["the last one is not reported yet", 10, [chain("a"), ended(9)]],
  ["the end of one is missing", 9, [chain("a")]],
])("the whole is read again where %s", async (_, generation, datagrams) => {
  const { chains, kernel } = await held();
  expect(await chains(generation, ...datagrams)).toEqual([]);
  expect(kernel.readings).toBe(2);
});

test("the whole is read again after ten minutes", async () => {
  const { chains, kernel, clock } = await held();
  await clock.advance(600_000);
  await chains(8);
  expect(kernel.readings).toBe(1);
  await clock.advance(1);
  await chains(8);
  expect(kernel.readings).toBe(2);
});
