import type { Attributes } from "@fairlead/netfilter/netlink";
import {
  decodeChain,
  decodeForeignRule,
  decodeSet,
  FAMILY_NUMBERS,
  type NftChain,
  type NftFamily,
  type NftRule,
  type NftSet,
  type NftTable,
  UnreadableNft,
} from "@fairlead/netfilter/nft";
import type { NetlinkSocket } from "../netlink/socket.ts";
import { withElements } from "./elements.ts";
import { exchange } from "./exchange.ts";
import { attributes } from "./listing.ts";
import { encodeGetOne, type ObjectName } from "./requests.ts";

/** A table of any family, by NFPROTO_*. */
export interface TablePlace {
  /** The number of the table's family. */
  readonly family: number;
  /** The table's name. */
  readonly table: string;
}

/** A rule with the sets that it asks: those of no name with their elements, which stand where they are used. */
export interface RuleWithSets {
  /** The rule, decoded. */
  readonly rule: NftRule;
  /** By their names. */
  readonly sets: NftTable["sets"];
}

/**
 * One rule; the cost is that rule's, whatever else the table has.
 *
 * @param ip the family of the packets whose headers it reads
 * @returns undefined: it is gone
 */
export async function readRule(
  socket: NetlinkSocket,
  place: TablePlace,
  { chain, handle }: { readonly chain: string; readonly handle: bigint },
  ip: NftFamily,
): Promise<RuleWithSets | undefined> {
  const found = await readOne(socket, place, { what: "rule", chain, handle });
  if (found === undefined) return undefined;
  const { rule } = decodeForeignRule(found, ip);
  const names = rule.expressions.flatMap((one) => {
    if (one.kind === "lookup" || one.kind === "dynset") return [one.set];
    return one.kind === "objref" && "map" in one ? [one.map] : [];
  });
  const sets = new Map<string, NftSet>();
  for (const name of new Set(names)) {
    for (const [own, set] of await readSet(socket, place, name)) sets.set(own, set);
  }
  return { rule, sets };
}

/** @returns undefined: there is no such chain, or none that is known here */
export async function readChain(
  socket: NetlinkSocket,
  place: TablePlace,
  name: string,
): Promise<Omit<NftChain, "rules"> | undefined> {
  const found = await readOne(socket, place, { what: "chain", name });
  return found && ifKnown(() => decodeChain(found));
}

/** @returns none: it is gone, or of a kind that is not known here */
async function readSet(socket: NetlinkSocket, place: TablePlace, name: string): Promise<NftTable["sets"]> {
  const found = await readOne(socket, place, { what: "set", name });
  const set = found && ifKnown(() => decodeSet(found));
  if (set === undefined) return new Map();
  const family = FAMILIES.get(place.family);
  if (!set.flags.includes("anonymous")) return new Map([[name, { ...set, elements: new Map() }]]);
  if (family === undefined) return new Map();
  return withElements(socket, family, place.table, [set]).catch((error: unknown) => {
    if (error instanceof UnreadableNft) return new Map();
    throw error;
  });
}

const FAMILIES = new Map<number, NftFamily>([
  [FAMILY_NUMBERS.ip, "ip"],
  [FAMILY_NUMBERS.ip6, "ip6"],
]);

async function readOne(
  socket: NetlinkSocket,
  { family, table }: TablePlace,
  of: ObjectName,
): Promise<Attributes | undefined> {
  for (const { reply, bytes } of await exchange(socket, encodeGetOne(family, table, of))) {
    if (reply.kind === "data") return attributes(bytes, reply.attributes);
  }
  return undefined;
}

function ifKnown<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch (error) {
    if (error instanceof UnreadableNft) return undefined;
    throw error;
  }
}
