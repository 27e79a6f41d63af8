import type { IPFamily } from "@fairlead/base";
import { findAttribute } from "@fairlead/netfilter/netlink";
import {
  decodeChain,
  decodeForeignRule,
  decodeSet,
  NFT_FAMILY,
  type NftSet,
  type NftTable,
  nftNumbers,
  UnreadableNft,
} from "@fairlead/netfilter/nft";
import { dump } from "../netlink/requests.ts";
import { type NetlinkSocket, openNetfilterSocket } from "../netlink/socket.ts";
import { encodeGetTables, generationOf } from "./exchange.ts";
import { readTableWith, type Strictness, withElements } from "./read.ts";

/** A table of nf_tables by its name; `family` as nft writes it, or a number where it has no name for it. */
export interface NftTableName {
  /** `ip`, `ip6`, `inet`, `arp`, `bridge`, `netdev`. */
  readonly family: string;
  /** The table's name. */
  readonly name: string;
}

/**
 * The names of all tables of the network namespace of this process, of any family: no rule is read.
 *
 * @throws NativeCodeError when there is no compiled code for this machine; NetlinkError when the kernel has no
 *   nf_tables, or not for
 *   this process
 */
export async function nftTableNames(): Promise<readonly NftTableName[]> {
  return withSocket(namesOf);
}

/**
 * Tables of any program, read as far as they are known: steps of rules that are not known are expressions of the kind
 * "unknown", chains at hooks that are not known are no base chains, and sets of kinds that are not known are left out.
 *
 * @param wanted by name
 * @throws as `nftTableNames`
 */
export async function readNftTables(family: IPFamily, wanted: (name: string) => boolean): Promise<readonly NftTable[]> {
  return withSocket(async (socket) => {
    const own = NFT_FAMILY[family];
    const read = async () => {
      const names = (await namesOf(socket)).filter((table) => table.family === own && wanted(table.name));
      const tables: NftTable[] = [];
      for (const { name } of names) tables.push(...listOf(await readTableWith(LENIENT, socket, own, name)));
      return tables;
    };
    return unchanged(socket, read);
  });
}

/** A transaction of another program takes milliseconds, and most hosts see few. */
const READINGS = 5;

/** What was read without a change meanwhile; after some readings what is there. */
async function unchanged<T>(socket: NetlinkSocket, read: () => Promise<T>): Promise<T> {
  for (let reading = 1; ; reading++) {
    const { generation } = await generationOf(socket);
    const result = await read();
    if (reading === READINGS || (await generationOf(socket)).generation === generation) return result;
  }
}

const LENIENT: Strictness = {
  chain: (of) => knownOr(() => decodeChain(of), { name: of.text(nftNumbers.CHAIN.name) ?? "" }),
  rule: decodeForeignRule,
  set: (of) => listOf(knownOr(() => decodeSet(of), undefined)),
  async elements(socket, family, table, sets) {
    const filled = new Map<string, NftSet>();
    for (const set of sets) {
      const read = await withElements(socket, family, table, [set]).catch(noneIfUnknown);
      for (const [name, one] of read) filled.set(name, one);
    }
    return filled;
  },
};

function knownOr<T>(decode: () => T, otherwise: T): T {
  try {
    return decode();
  } catch (error) {
    if (error instanceof UnreadableNft) return otherwise;
    throw error;
  }
}

function noneIfUnknown(error: unknown): NftTable["sets"] {
  if (error instanceof UnreadableNft) return new Map();
  throw error;
}

function listOf<T>(one: T | undefined): readonly T[] {
  return one === undefined ? [] : [one];
}

/** NFPROTO_* of linux/netfilter.h. */
const FAMILIES: Readonly<Record<number, string>> = {
  1: "inet",
  2: "ip",
  3: "arp",
  5: "netdev",
  7: "bridge",
  10: "ip6",
};
/** Bytes of nfgenmsg, of which the first one is the family, before the attributes. */
const FAMILY_BEFORE = 4;

async function namesOf(socket: NetlinkSocket): Promise<readonly NftTableName[]> {
  const names: NftTableName[] = [];
  await dump(socket, encodeGetTables(), "listing tables of nf_tables", (bytes, message) => {
    const found = findAttribute(bytes, message, nftNumbers.TABLE.name);
    if (found === undefined) return;
    const number = bytes[message.start - FAMILY_BEFORE] ?? 0;
    const name = bytes.toString("utf8", found.start, found.end).replace(/\0+$/, "");
    names.push({ family: FAMILIES[number] ?? String(number), name });
  });
  return names;
}

async function withSocket<T>(work: (socket: NetlinkSocket) => Promise<T>): Promise<T> {
  const socket = await openNetfilterSocket();
  try {
    return await work(socket);
  } finally {
    await socket.close();
  }
}
