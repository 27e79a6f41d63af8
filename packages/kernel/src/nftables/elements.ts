import { nextTurn } from "@fairlead/base";
import {
  decodeElements,
  elementKey,
  type Hex,
  type NftFamily,
  type NftSet,
  type NftTable,
  type SetElement,
} from "@fairlead/netfilter/nft";
import { dump } from "../netlink/dump.ts";
import { NetlinkError } from "../netlink/error.ts";
import type { NetlinkSocket } from "../netlink/socket.ts";
import { exchange } from "./exchange.ts";
import { attributes } from "./listing.ts";
import { encodeDumpOfSet, encodeLookUp } from "./requests.ts";

/** The sets of a table with all their elements. */
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
