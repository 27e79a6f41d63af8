import { createHash } from "node:crypto";
import type { ChainTally, IptablesPort, Table } from "@fairlead/netfilter";
import { AttributeWriter, attributesIn, findAttribute, type Range } from "@fairlead/netfilter/netlink";
import { nftNumbers } from "@fairlead/netfilter/nft";
import type { IPFamily } from "../family.ts";
import { ADDRESS_FAMILIES } from "../netlink/address-families.ts";
import { dump } from "../netlink/dump.ts";
import { decodeReplies, encodeRequest } from "../netlink/messages.ts";
import { DATAGRAM_SIZE, type NetlinkSocket, openNetfilterSocket } from "../netlink/socket.ts";
import { generation } from "./generation.ts";
import type { Variant } from "./variant.ts";

/** Undefined: this kernel does not say, or the rules change faster than they can be read. */
export type Tally = NonNullable<IptablesPort["tally"]>;

const { CHAIN, EXPRESSION, FLAGS, MESSAGES, RULE, SUBSYSTEM } = nftNumbers;

/** Somebody's transaction meanwhile makes a list worthless. */
const READINGS = 3;

/**
 * Asks nf_tables in the network namespace of this process, by netlink. A replaced rule may keep its handle, so the mark
 * is about all that a rule is made of. The legacy variant gives a table as a whole only: it tells nothing.
 */
export function createTally(family: IPFamily, variant: Variant): Tally {
  if (variant === "legacy") return async () => undefined;
  let opened: Promise<NetlinkSocket> | undefined;
  return async (table, chains) => {
    try {
      opened ??= openNetfilterSocket();
      const socket = await opened;
      for (let reading = 0; reading < READINGS; reading++) {
        const before = await generation(socket);
        const tallies = await tallyAll(socket, ADDRESS_FAMILIES[family], table, chains);
        if ((await generation(socket)) === before) return tallies;
      }
    } catch {
      // A part of an answer may be left in the socket.
      const broken = opened;
      opened = undefined;
      await broken?.then((socket) => socket.close()).catch(() => {});
    }
    return undefined;
  };
}

async function tallyAll(
  socket: NetlinkSocket,
  addressFamily: number,
  table: Table,
  chains: readonly string[],
): Promise<ReadonlyMap<string, ChainTally>> {
  const tallies = new Map<string, ChainTally>();
  for (const chain of chains) {
    const tally = await tallyOne(socket, addressFamily, table, chain);
    // A list of no rules is also that of a chain that is not there.
    if (tally.rules > 0 || (await isThere(socket, addressFamily, table, chain))) tallies.set(chain, tally);
  }
  return tallies;
}

async function tallyOne(
  socket: NetlinkSocket,
  addressFamily: number,
  table: Table,
  chain: string,
): Promise<ChainTally> {
  const attributes = new AttributeWriter(128).text(RULE.table, table).text(RULE.chain, chain).bytes();
  const type = (SUBSYSTEM << 8) | MESSAGES.getRule;
  const request = encodeRequest({ type, flags: FLAGS.request | FLAGS.dump, addressFamily, attributes });
  const hash = createHash("sha256");
  let rules = 0;
  await dump(socket, request, `the rules of chain ${chain} in table ${table}`, (bytes, message) => {
    forgetCounters(bytes, message);
    hash.update(bytes.subarray(message.start, message.end));
    rules += 1;
  });
  return { rules, mark: hash.digest("base64") };
}

const COUNTER = Buffer.from("counter\0");

function forgetCounters(bytes: Buffer, message: Range): void {
  const expressions = findAttribute(bytes, message, RULE.expressions);
  if (expressions === undefined) return;
  for (const expression of attributesIn(bytes, expressions)) {
    const name = findAttribute(bytes, expression, EXPRESSION.name);
    const data = findAttribute(bytes, expression, EXPRESSION.data);
    const isCounter = name !== undefined && COUNTER.equals(bytes.subarray(name.start, name.end));
    if (isCounter && data !== undefined) bytes.fill(0, data.start, data.end);
  }
}

async function isThere(socket: NetlinkSocket, addressFamily: number, table: Table, chain: string): Promise<boolean> {
  const attributes = new AttributeWriter(128).text(CHAIN.table, table).text(CHAIN.name, chain).bytes();
  const type = (SUBSYSTEM << 8) | MESSAGES.getChain;
  await socket.send(encodeRequest({ type, flags: FLAGS.request, addressFamily, attributes }));
  const bytes = await socket.receive(Buffer.alloc(DATAGRAM_SIZE));
  return [...decodeReplies(bytes)].some(({ kind }) => kind === "data");
}
