/** Which tables and chains there are, and whether rules went, read from the kernel without an iptables program. */

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { errorCode } from "@fairlead/base";
import { BUILTIN_CHAINS, type IptablesPort, type Table, type TableGlance } from "@fairlead/netfilter";
import { findAttribute } from "@fairlead/netfilter/netlink";
import { NFT_FAMILY, nftNumbers } from "@fairlead/netfilter/nft";
import type { IPFamily } from "../family.ts";
import { decodeReplies, encodeRequest, FLAGS } from "../netlink/messages.ts";
import { dump } from "../netlink/requests.ts";
import { DATAGRAM_SIZE, type NetlinkSocket, openNetfilterSocket } from "../netlink/socket.ts";
import { attributes, encodeGet, encodeGetChain } from "../nftables/exchange.ts";
import { isNftChainThere, isNftTableThere } from "../nftables/read.ts";

/** To ask the tools about a table would make the kernel create it. */
export const LEGACY_TABLE_NAMES = {
  IPv4: "/proc/self/net/ip_tables_names",
  IPv6: "/proc/self/net/ip6_tables_names",
} as const;

/** Whether a variant of iptables has any table; undefined: only the tools can say. */
export type TablesThere = (family: IPFamily, variant: Variant) => Promise<boolean | undefined>;

/** `TablesThere` of the network namespace of this process, without a process of its own. */
export const areTablesThere: TablesThere = (family, variant) =>
  variant === "nft" ? isAnyNftTableThere(family) : isAnyLegacyTableThere(family);

/** Which kernel API the tools speak to: nf_tables, or the x_tables of old. */
export type Variant = "nft" | "legacy";

/**
 * Which chains there are, without a process: a start that looks for what other modes left asks 14 times. Undefined:
 * the kernel does not say, or not to this process, or the table is one of the legacy variant with more than
 * `FEW_ENTRIES`.
 */
export interface ChainsThere {
  /** Names, built-in ones included. */
  all(table: Table): Promise<ReadonlySet<string> | undefined>;
  /** Whether there is such a chain; undefined: it cannot be said. */
  has(table: Table, chain: string): Promise<boolean | undefined>;
}

/** Asks in the network namespace of this process. */
export function createChainsThere(family: IPFamily, variant: Variant): ChainsThere {
  const known = <T>(asked: Promise<T>): Promise<T | undefined> => asked.catch(() => undefined);
  if (variant === "nft") {
    return {
      all: (table) => known(nftChains(family, table)),
      has: (table, chain) => isNftChainThere(family, table, chain),
    };
  }
  // Its socket stays open, and there is one of it.
  let opened: ReturnType<typeof openLegacyTables> | undefined;
  const all = (table: Table) => known(legacyChains(family, table, () => (opened ??= openLegacyTables(family))));
  return { all, has: async (table, chain) => (await all(table))?.has(chain) };
}

/**
 * Of a legacy table of at most 5,000 entries the state is another one after any change, of a larger one after one of
 * number or size; on the nft variant after any, in whatever table. Undefined: this kernel does not say, or not to this
 * process.
 */
export type Glance = NonNullable<IptablesPort["glance"]>;

/** Asks in the network namespace of this process, by a system call or two, however large the table is. */
export function createGlance(family: IPFamily, variant: Variant): Glance {
  const open = variant === "nft" ? openGeneration : () => openInfo(family);
  let opened: ReturnType<typeof open> | undefined;
  return async (table) => {
    try {
      opened ??= open();
      return (await opened)(table);
    } catch {
      return undefined;
    }
  };
}

/**
 * How many rules there are, as numbers that a flush lowers: on the nft variant those of each of the chains, with the
 * jumps to it; of a legacy table all of its entries. Undefined: this kernel does not say, or not to this process.
 */
export type RuleCounts = (table: Table, chains: readonly string[]) => Promise<readonly number[] | undefined>;

/**
 * Asks in the network namespace of this process, by a system call or two where nothing has changed, however large the
 * table is. Calls come one after the other.
 */
export function createRuleCounts(family: IPFamily, variant: Variant): RuleCounts {
  const open = variant === "nft" ? () => openChainCounts(family) : () => openEntryCounts(family);
  let opened: Promise<RuleCounts> | undefined;
  return async (table, chains) => {
    try {
      opened ??= open();
      return await (await opened)(table, chains);
    } catch {
      return undefined;
    }
  };
}

export type ChainsByTable = Readonly<Partial<Record<Table, readonly string[]>>>;

/**
 * Compares how many rules there are from look to look. More of them are no loss, and what this process has written
 * between two looks is none either.
 */
export class LostRules {
  readonly #counts: RuleCounts;
  #writing = 0;
  /** How often something was written. */
  #written = 0;
  /** Undefined: the next look has nothing to compare with. */
  #before: readonly number[] | undefined;

  constructor(counts: RuleCounts) {
    this.#counts = counts;
  }

  /** Carries out what writes rules. */
  async writing(work: () => Promise<void>): Promise<void> {
    this.#writing++;
    this.#before = undefined;
    try {
      await work();
    } finally {
      this.#writing--;
      this.#written++;
    }
  }

  /** False before this process has written anything: only to ask would make the kernel create tables. */
  async look(chains: ChainsByTable): Promise<boolean> {
    const written = this.#written;
    if (written === 0 || this.#writing > 0) return false;
    const before = this.#before;
    const now: number[] = [];
    for (const [table, names] of Object.entries(chains)) {
      const counts = await this.#counts(table as Table, names);
      if (counts === undefined) return false;
      now.push(...counts);
    }
    if (this.#writing > 0 || this.#written !== written) return false;
    this.#before = now;
    return before !== undefined && now.some((count, at) => count < (before[at] ?? 0));
  }
}

/** Entries up to which all of them are read: a megabyte or two. */
export const FEW_ENTRIES = 5000;

/** As the tools call them; the legacy variant's file has a line for each that another program has used. */
const TABLES = ["nat", "filter", "mangle", "raw", "security"] as const;

async function isAnyNftTableThere(family: IPFamily): Promise<boolean | undefined> {
  const found = await Promise.all(TABLES.map((table) => isNftTableThere(family, table)));
  if (found.includes(true)) return true;
  return found.includes(undefined) ? undefined : false;
}

async function isAnyLegacyTableThere(family: IPFamily): Promise<boolean | undefined> {
  const loaded = await loadedLegacyTables(family).catch(() => undefined);
  return loaded && loaded.length > 0;
}

/** The legacy tables that are in use in the network namespace of this process. */
async function loadedLegacyTables(family: IPFamily): Promise<readonly string[]> {
  try {
    const names = (await readFile(LEGACY_TABLE_NAMES[family], "utf8")).trim();
    return names === "" ? [] : names.split("\n");
  } catch (error) {
    // A kernel without the legacy tables, or with their module not loaded.
    if (errorCode(error) === "ENOENT") return [];
    throw error;
  }
}

const { CHAIN, GENERATION, MESSAGES, SUBSYSTEM } = nftNumbers;

async function nftChains(family: IPFamily, table: Table): Promise<ReadonlySet<string>> {
  const names = new Set(BUILTIN_CHAINS[table]);
  const socket = await openNetfilterSocket();
  try {
    const interrupted = await dump(socket, encodeGet("getChain", NFT_FAMILY[family]), "chains", (bytes, message) => {
      const chain = attributes(bytes, message);
      // Kernels list the chains of all tables of the family.
      if (chain.text(CHAIN.table) === table) names.add(chain.text(CHAIN.name) ?? "");
    });
    if (interrupted) throw new Error("the chains changed while they were listed");
    return names;
  } finally {
    await socket.close();
  }
}

/** The tables of x_tables as the kernel holds them, in the network namespace of this process. */
interface LegacyTables {
  /**
   * Of a table that is not loaded the kernel makes an empty one.
   *
   * @throws Error when the kernel refuses
   */
  size(table: Table): { readonly entries: number; readonly bytes: number };
  /**
   * struct ipt_entry or ip6t_entry, one behind the other.
   *
   * @param bytes as `size` has just reported them
   * @throws Error when the table has another size by now
   */
  entries(table: Table, bytes: number): Buffer;
}

async function legacyChains(
  family: IPFamily,
  table: Table,
  open: () => Promise<LegacyTables>,
): Promise<ReadonlySet<string> | undefined> {
  const names = new Set(BUILTIN_CHAINS[table]);
  if (!(await loadedLegacyTables(family)).includes(table)) return names;
  const tables = await open();
  const { entries, bytes } = tables.size(table);
  if (entries > FEW_ENTRIES) return undefined;
  for (const name of chainNames(tables.entries(table, bytes), family)) names.add(name);
  return names;
}

type Ask = (table: Table) => Promise<TableGlance> | TableGlance;

/** Its generation counts transactions of all tables and families of the namespace. */
async function openGeneration(): Promise<Ask> {
  const socket = await openNetfilterSocket();
  return async () => ({ state: String(await generation(socket)) });
}

async function openEntryCounts(family: IPFamily): Promise<RuleCounts> {
  const tables = await openLegacyTables(family);
  return async (table) => [tables.size(table).entries];
}

async function openChainCounts(family: IPFamily): Promise<RuleCounts> {
  const socket = await openNetfilterSocket();
  const known = new Map<Table, { readonly at: number; readonly counts: readonly number[] }>();
  return async (table, chains) => {
    const at = await generation(socket);
    const before = known.get(table);
    if (before?.at === at) return before.counts;
    const counts: number[] = [];
    for (const chain of chains) counts.push(await countOfChain(socket, family, table, chain));
    known.set(table, { at, counts });
    return counts;
  };
}

/** 0: there is no such chain. */
async function countOfChain(socket: NetlinkSocket, family: IPFamily, table: Table, chain: string): Promise<number> {
  await socket.send(encodeGetChain(NFT_FAMILY[family], table, chain));
  const bytes = await socket.receive(Buffer.alloc(DATAGRAM_SIZE));
  for (const reply of decodeReplies(bytes)) {
    if (reply.kind === "data") return attributes(bytes, reply.attributes).u32(CHAIN.use) ?? 0;
  }
  return 0;
}

/** In struct ipt_entry and ip6t_entry: the counters of packets and bytes. */
const COUNTERS_AT = { IPv4: 96, IPv6: 152 } as const;
const COUNTER_BYTES = 16;

async function openInfo(family: IPFamily): Promise<Ask> {
  const tables = await openLegacyTables(family);
  return (table) => {
    const { entries, bytes } = tables.size(table);
    if (entries > FEW_ENTRIES) return { state: `${entries} ${bytes}`, entries };
    return { state: digest(tables.entries(table, bytes), family), entries };
  };
}

/** Of the rules without what they have counted. */
function digest(entries: Buffer, family: IPFamily): string {
  for (const at of entryStarts(entries, family)) {
    const counters = at + COUNTERS_AT[family];
    entries.fill(0, counters, counters + COUNTER_BYTES);
  }
  return createHash("sha256").update(entries).digest("base64");
}

/** The number that every transaction of nf_tables in the namespace raises. */
async function generation(socket: NetlinkSocket): Promise<number> {
  const type = (SUBSYSTEM << 8) | MESSAGES.getGeneration;
  await socket.send(encodeRequest({ type, flags: FLAGS.request, addressFamily: 0, attributes: new Uint8Array() }));
  const bytes = await socket.receive(Buffer.alloc(DATAGRAM_SIZE));
  for (const reply of decodeReplies(bytes)) {
    const id = reply.kind === "data" ? findAttribute(bytes, reply.attributes, GENERATION.id) : undefined;
    if (id !== undefined) return bytes.readUInt32BE(id.start);
  }
  throw new Error("nf_tables did not report its generation");
}

/**
 * linux/netfilter_ipv4/ip_tables.h and its IPv6 twin: AF and level of the options IPT_SO_GET_INFO and
 * IPT_SO_GET_ENTRIES.
 */
const SOCKET_OF = { IPv4: [2, 0], IPv6: [10, 41] } as const;
const OPTION = { info: 64, entries: 65 } as const;
/** SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW. */
const RAW_SOCKET = [0o3 | 0o2000000, 255] as const;
/** struct ipt_getinfo: a name of 32 bytes, hooks, and in the end the number of entries and their size in bytes. */
const INFO = { bytes: 84, entries: 76, size: 80 } as const;
/** struct ipt_get_entries: a name, the entries' size, and from the 40th byte on the entries. */
const LISTING = { size: 32, entries: 40 } as const;
/** In struct ipt_entry and ip6t_entry: the bytes to the target, and behind them those to the next entry (16 bits). */
const OFFSETS_AT = { IPv4: 88, IPv6: 140 } as const;
/** struct xt_entry_target: its size (16 bits), its name, and from the 32nd byte on its data. */
const TARGET = { name: 2, data: 32, nameBytes: 29 } as const;
/** The target that begins a chain, with the chain's name as data; the table ends with one of its own name. */
const HEAD = "ERROR";
const CHAIN_NAME_BYTES = 30;

async function openLegacyTables(family: IPFamily): Promise<LegacyTables> {
  const { default: koffi } = await import("koffi");
  const libc = koffi.load(null);
  const [addressFamily, level] = SOCKET_OF[family];
  const descriptor: number = libc.func("int socket(int, int, int)")(addressFamily, ...RAW_SOCKET);
  const getsockopt = libc.func("int getsockopt(int, int, int, void *, void *)");
  if (descriptor < 0) throw new Error("cannot open a raw socket");
  const ask = (number: number, room: Buffer) => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(room.length);
    if (getsockopt(descriptor, level, number, room, length) !== 0) throw new Error("cannot read the table");
    return room;
  };
  return {
    size(table) {
      const reported = Buffer.alloc(INFO.bytes);
      reported.write(table);
      ask(OPTION.info, reported);
      return { entries: reported.readUInt32LE(INFO.entries), bytes: reported.readUInt32LE(INFO.size) };
    },
    entries(table, bytes) {
      const all = Buffer.alloc(LISTING.entries + bytes);
      all.write(table);
      all.writeUInt32LE(bytes, LISTING.size);
      return ask(OPTION.entries, all).subarray(LISTING.entries);
    },
  };
}

function* entryStarts(entries: Buffer, family: IPFamily): Generator<number, void, void> {
  for (let at = 0; at < entries.length; ) {
    yield at;
    const length = entries.readUInt16LE(at + OFFSETS_AT[family] + 2);
    if (length === 0) throw new Error("an entry without a length");
    at += length;
  }
}

/** The names of the chains that programs made; built-in chains have no name in the kernel. */
function* chainNames(entries: Buffer, family: IPFamily): Generator<string, void, void> {
  for (const at of entryStarts(entries, family)) {
    const target = at + entries.readUInt16LE(at + OFFSETS_AT[family]);
    if (textAt(entries, target + TARGET.name, TARGET.nameBytes) !== HEAD) continue;
    const name = textAt(entries, target + TARGET.data, CHAIN_NAME_BYTES);
    if (name !== HEAD) yield name;
  }
}

function textAt(bytes: Buffer, start: number, most: number): string {
  const field = bytes.subarray(start, start + most);
  const end = field.indexOf(0);
  return field.toString("latin1", 0, end < 0 ? most : end);
}
