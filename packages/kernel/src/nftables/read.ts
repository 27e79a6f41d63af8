/** Reads tables, sets and elements of a kernel as they are, or fails where something in them is unknown. */

import { nextTurn } from "@fairlead/base";
import type { Attributes } from "@fairlead/netfilter/netlink";
import {
  COUNTER,
  decodeChain,
  decodeElements,
  decodeFlowtable,
  decodeRule,
  decodeSet,
  elementKey,
  isDormant,
  NFT_FAMILY,
  type NftChain,
  type NftFamily,
  type NftRule,
  type NftSet,
  type NftTable,
  nftNumbers,
  type SetElement,
  tableCommentOf,
  UnreadableNft,
} from "@fairlead/netfilter/nft";
import type { IPFamily } from "../family.ts";
import { NetlinkError } from "../netlink/listening.ts";
import { decodeReplies } from "../netlink/messages.ts";
import { dump } from "../netlink/requests.ts";
import { DATAGRAM_SIZE, type NetlinkSocket, openNetfilterSocket } from "../netlink/socket.ts";
import {
  attributes,
  encodeDumpOfChain,
  encodeDumpOfSet,
  encodeGet,
  encodeGetChain,
  exchange,
  listing,
} from "./exchange.ts";

/** How what is not known here is taken. */
export interface Strictness {
  readonly chain: typeof decodeChain;
  readonly rule: typeof decodeRule;
  /** @returns none: it is left out */
  readonly set: (of: Attributes) => readonly Omit<NftSet, "elements">[];
  readonly elements: typeof withElements;
}

/** A table of hashes is resized within milliseconds. */
const READINGS = 20;

const STRICT: Strictness = {
  chain: decodeChain,
  rule: decodeRule,
  set: (of) => [decodeSet(of)],
  elements: withElements,
};

/** `NftablesClient.table` */
export function readTable(socket: NetlinkSocket, family: NftFamily, name: string): Promise<NftTable | undefined> {
  return readTableWith(STRICT, socket, family, name);
}

/** @returns undefined when there is no such table */
export async function readTableWith(
  { chain, rule, set, elements }: Strictness,
  socket: NetlinkSocket,
  family: NftFamily,
  name: string,
): Promise<NftTable | undefined> {
  const title = await titleOfTable(socket, family, name);
  if (title === undefined) return undefined;
  const all = <T>(
    what: "getChain" | "getRule" | "getSet" | "getFlowtable",
    tableAt: number,
    decode: (of: Attributes) => readonly T[],
  ) =>
    listing(socket, encodeGet(what, family, name), `reading table ${family} ${name}`, (of) =>
      of.text(tableAt) === name ? decode(of) : [],
    );
  const chains = await all("getChain", nftNumbers.CHAIN.table, (of) => [chain(of)]);
  const rules = await all("getRule", nftNumbers.RULE.table, (of) => [rule(of, family)]);
  const sets = await all("getSet", nftNumbers.SET.table, set);
  const flowtables = await all("getFlowtable", nftNumbers.FLOWTABLE.table, (of) => [decodeFlowtable(of)]);
  return {
    family,
    name,
    ...title,
    chains: withRules(chains, rules),
    sets: await elements(socket, family, name, sets),
    ...(flowtables.length > 0 && { flowtables: new Map(flowtables.map((one) => [one.name, one])) }),
  };
}

/** `NftablesClient.sets` */
export async function readSets(
  socket: NetlinkSocket,
  family: NftFamily,
  table: string,
  wanted: (set: Omit<NftSet, "elements">) => boolean,
): Promise<ReadonlyMap<string, NftSet>> {
  // Of a table that is not there the kernel lists nothing, or says so.
  if ((await titleOfTable(socket, family, table)) === undefined) return new Map();
  const request = encodeGet("getSet", family, table);
  const sets = await listing(socket, request, `reading the sets of table ${family} ${table}`, (of) =>
    of.text(nftNumbers.SET.table) === table ? knownSet(of) : [],
  );
  return withElements(socket, family, table, sets.filter(wanted));
}

export async function withElements(
  socket: NetlinkSocket,
  family: NftFamily,
  table: string,
  sets: readonly Omit<NftSet, "elements">[],
): Promise<NftTable["sets"]> {
  const filled = new Map<string, NftSet>();
  for (const set of sets) {
    const request = encodeDumpOfSet(family, table, set.name);
    filled.set(set.name, { ...set, elements: await elementsOf(socket, request, `set ${family} ${table} ${set.name}`) });
  }
  return filled;
}

const { EXPRESSION, RULE } = nftNumbers;

/** `NftablesClient.counted` */
export async function counted(
  socket: NetlinkSocket,
  family: NftFamily,
  table: string,
  chain: string,
): Promise<number | undefined> {
  try {
    const what = `reading the counters of chain ${family} ${table} ${chain}`;
    const rules = await listing(socket, encodeDumpOfChain(family, table, chain), what, (of) => [
      of.list(RULE.expressions).map((one) => packetsOf(one.text(EXPRESSION.name), one.nested(EXPRESSION.data))),
    ]);
    return rules.length === 0 ? undefined : rules.flat().reduce((sum, packets) => sum + packets, 0);
  } catch (error) {
    if (error instanceof NetlinkError && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Whether nf_tables has a table of the family `ip` or `ip6`, in the network namespace of this process. One system call,
 * whatever else is there: the nft tool reads every rule before it lists tables, a minute and more alongside 10,000
 * services' rules.
 *
 * @returns undefined: this kernel does not say, or not to this process
 */
export async function isNftTableThere(family: IPFamily, name: string): Promise<boolean | undefined> {
  return isNftObjectThere(encodeGet("getTable", NFT_FAMILY[family], name, false));
}

/** The same of one chain of a table; a table that is not there has none. */
export async function isNftChainThere(family: IPFamily, table: string, name: string): Promise<boolean | undefined> {
  return isNftObjectThere(encodeGetChain(NFT_FAMILY[family], table, name));
}

/** @returns none where its types are not known here */
function knownSet(of: Attributes): readonly Omit<NftSet, "elements">[] {
  try {
    return [decodeSet(of)];
  } catch (error) {
    if (error instanceof UnreadableNft) return [];
    throw error;
  }
}

/** @returns undefined: there is no such table */
async function titleOfTable(
  socket: NetlinkSocket,
  family: NftFamily,
  name: string,
): Promise<Pick<NftTable, "comment" | "dormant"> | undefined> {
  for (const { reply, bytes } of await exchange(socket, encodeGet("getTable", family, name, false))) {
    if (reply.kind === "data") {
      const of = attributes(bytes, reply.attributes);
      const comment = tableCommentOf(of);
      return { ...(comment !== undefined && { comment }), ...(isDormant(of) && { dormant: true }) };
    }
    if (reply.kind !== "result" || reply.errno === 0) continue;
    const error = new NetlinkError(`reading table ${family} ${name}`, reply.errno);
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
  throw new Error(`netlink: no reply about table ${family} ${name}`);
}

function withRules(
  chains: readonly Omit<NftChain, "rules">[],
  rules: readonly { readonly chain: string; readonly rule: NftRule }[],
): NftTable["chains"] {
  const byChain = Map.groupBy(rules, ({ chain }) => chain);
  return new Map(
    chains.map((chain) => [chain.name, { ...chain, rules: (byChain.get(chain.name) ?? []).map(({ rule }) => rule) }]),
  );
}

/**
 * The kernel begins each datagram of a listing anew from its count of elements so far: while it resizes the set after
 * many insertions, some come twice and others not at all. So a listing in which one stands twice is read again.
 */
async function elementsOf(socket: NetlinkSocket, request: Buffer, what: string): Promise<NftSet["elements"]> {
  for (let reading = 0; reading < READINGS; reading++) {
    const byKey = new Map<string, SetElement>();
    let count = 0;
    await dump(socket, request, `reading ${what}`, (bytes, message) => {
      for (const element of decodeElements(attributes(bytes, message)).elements) {
        byKey.set(elementKey(element), element);
        count += 1;
      }
    });
    if (byKey.size === count) return byKey;
    await nextTurn();
  }
  throw new Error(`netlink: ${what} changes faster than it can be read`);
}

function packetsOf(name: string | undefined, data: Attributes | undefined): number {
  return name === "counter" ? Number(data?.u64(COUNTER.packets) ?? 0n) : 0;
}

const ENOENT = 2;

async function isNftObjectThere(request: Buffer): Promise<boolean | undefined> {
  try {
    const socket = await openNetfilterSocket();
    try {
      await socket.send(request);
      for (const reply of decodeReplies(await socket.receive(Buffer.alloc(DATAGRAM_SIZE)))) {
        if (reply.kind === "data") return true;
        if (reply.kind === "result" && reply.errno === ENOENT) return false;
      }
    } finally {
      await socket.close();
    }
  } catch {
    // The caller has another way.
  }
  return undefined;
}
