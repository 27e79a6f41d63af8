import { nextTurn } from "@fairlead/base";
import { Attributes } from "@fairlead/netfilter/netlink";
import {
  decodeChain,
  decodeElements,
  decodeRule,
  decodeSet,
  type Hex,
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
import { dump } from "../netlink/dump.ts";
import { NetlinkError } from "../netlink/error.ts";
import type { NetlinkSocket } from "../netlink/socket.ts";
import { exchange } from "./exchange.ts";
import { encodeDumpOfSet, encodeGet, encodeLookUp } from "./requests.ts";

/** `NftablesClient.table` */
export async function readTable(socket: NetlinkSocket, family: NftFamily, name: string): Promise<NftTable | undefined> {
  const comment = await commentOfTable(socket, family, name);
  if (comment === undefined) return undefined;
  const all = <T>(what: "getChain" | "getRule" | "getSet", tableAt: number, decode: (of: Attributes) => T) =>
    listing(socket, encodeGet(what, family, name), `reading table ${family} ${name}`, (of) =>
      of.text(tableAt) === name ? [decode(of)] : [],
    );
  const chains = await all("getChain", nftNumbers.CHAIN.table, decodeChain);
  const rules = await all("getRule", nftNumbers.RULE.table, (of) => decodeRule(of, family));
  const sets = await all("getSet", nftNumbers.SET.table, decodeSet);
  return {
    family,
    name,
    ...(comment !== "" && { comment }),
    chains: withRules(chains, rules),
    sets: await withElements(socket, family, name, sets),
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
  if ((await commentOfTable(socket, family, table)) === undefined) return new Map();
  const request = encodeGet("getSet", family, table);
  const sets = await listing(socket, request, `reading the sets of table ${family} ${table}`, (of) =>
    of.text(nftNumbers.SET.table) === table ? knownSet(of) : [],
  );
  return withElements(socket, family, table, sets.filter(wanted));
}

/** @returns none where its types are not known here: nobody can want it */
function knownSet(of: Attributes): readonly Omit<NftSet, "elements">[] {
  try {
    return [decodeSet(of)];
  } catch (error) {
    if (error instanceof UnreadableNft) return [];
    throw error;
  }
}

/** @returns undefined: there is no such table; "": it has no comment */
async function commentOfTable(socket: NetlinkSocket, family: NftFamily, name: string): Promise<string | undefined> {
  for (const { reply, bytes } of await exchange(socket, encodeGet("getTable", family, name, false))) {
    if (reply.kind === "data") return tableCommentOf(attributes(bytes, reply.attributes)) ?? "";
    if (reply.kind !== "result" || reply.errno === 0) continue;
    const error = new NetlinkError(`reading table ${family} ${name}`, reply.errno);
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
  throw new Error(`netlink: no answer about table ${family} ${name}`);
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

async function withElements(
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

/** A table of hashes is resized within milliseconds. */
const READINGS = 20;

/**
 * The kernel begins each datagram of a listing anew from its count of elements so far: while it resizes the set after
 * many insertions, some come twice and others not at all. So a listing in which one stands twice is read again.
 *
 * @throws Error when that does not end
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

/** Where an interval ends and the next one begins, the key alone stands there twice. */
function elementKey({ key, intervalEnd }: SetElement): string {
  return intervalEnd ? `${key} end` : key;
}

/** Keys in one request: the answer fits into one datagram. */
const KEYS_AT_ONCE = 100;

/** `NftablesClient.elements` */
export async function lookUp(
  socket: NetlinkSocket,
  family: NftFamily,
  table: string,
  set: string,
  keys: readonly Hex[],
): Promise<readonly SetElement[]> {
  const found: SetElement[] = [];
  for (let at = 0; at < keys.length; at += KEYS_AT_ONCE) {
    const some = keys.slice(at, at + KEYS_AT_ONCE);
    const together = await ask(socket, encodeLookUp(family, table, set, some), `looking into set ${set}`);
    // One key that is not there ends the request: then each is asked for by itself.
    if (together !== undefined) found.push(...together);
    else
      for (const key of some)
        found.push(...((await ask(socket, encodeLookUp(family, table, set, [key]), `looking into set ${set}`)) ?? []));
  }
  return found;
}

/** @returns undefined: a key is not there */
async function ask(socket: NetlinkSocket, request: Buffer, what: string): Promise<readonly SetElement[] | undefined> {
  const received = await exchange(socket, request);
  const errors = received.flatMap(({ reply }) =>
    reply.kind === "result" && reply.errno !== 0 ? [new NetlinkError(what, reply.errno)] : [],
  );
  const fatal = errors.find(({ code }) => code !== "ENOENT");
  if (fatal !== undefined) throw fatal;
  if (errors.length > 0) return undefined;
  return received.flatMap(({ reply, bytes }) =>
    reply.kind === "data" ? decodeElements(attributes(bytes, reply.attributes)).elements : [],
  );
}

/** Decodes each object of a listing as it comes, so that nothing large is left to be done at once. */
async function listing<T>(
  socket: NetlinkSocket,
  request: Buffer,
  what: string,
  decode: (of: Attributes) => readonly T[],
): Promise<readonly T[]> {
  const all: T[] = [];
  await dump(socket, request, what, (bytes, message) => {
    for (const one of decode(attributes(bytes, message))) all.push(one);
  });
  return all;
}

function attributes(bytes: Buffer, { start, end }: { readonly start: number; readonly end: number }): Attributes {
  return new Attributes(bytes, start, end);
}
