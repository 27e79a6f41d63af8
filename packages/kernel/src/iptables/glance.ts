import { createHash } from "node:crypto";
import type { IptablesPort, Table, TableGlance } from "@fairlead/netfilter";
import type { IPFamily } from "../family.ts";
import { openNetfilterSocket } from "../netlink/socket.ts";
import { generation } from "./generation.ts";
import type { Variant } from "./variant.ts";

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

type Ask = (table: Table) => Promise<TableGlance> | TableGlance;

/** Its generation counts transactions of all tables and families of the namespace. */
async function openGeneration(): Promise<Ask> {
  const socket = await openNetfilterSocket();
  return async () => ({ state: String(await generation(socket)) });
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
/** In struct ipt_entry and ip6t_entry: the bytes to the next one (16 bits), and the counters of packets and bytes. */
const ENTRY = {
  IPv4: { next: 90, counters: 96 },
  IPv6: { next: 142, counters: 152 },
} as const;
const COUNTER_BYTES = 16;

/** Entries up to which all of them are read: a megabyte or two. */
export const FEW_ENTRIES = 5000;

async function openInfo(family: IPFamily): Promise<Ask> {
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
  return (table) => {
    const reported = Buffer.alloc(INFO.bytes);
    reported.write(table);
    ask(OPTION.info, reported);
    const [entries, size] = [reported.readUInt32LE(INFO.entries), reported.readUInt32LE(INFO.size)];
    if (entries > FEW_ENTRIES) return { state: `${entries} ${size}`, entries };
    const all = Buffer.alloc(LISTING.entries + size);
    all.write(table);
    all.writeUInt32LE(size, LISTING.size);
    return { state: digest(ask(OPTION.entries, all).subarray(LISTING.entries), ENTRY[family]), entries };
  };
}

/** Of the rules without what they have counted. */
function digest(entries: Buffer, { next, counters }: (typeof ENTRY)[IPFamily]): string {
  for (let at = 0; at < entries.length; ) {
    entries.fill(0, at + counters, at + counters + COUNTER_BYTES);
    const length = entries.readUInt16LE(at + next);
    if (length === 0) throw new Error("an entry without a length");
    at += length;
  }
  return createHash("sha256").update(entries).digest("base64");
}
