import type { Table } from "@fairlead/netfilter";
import type { IPFamily } from "../family.ts";

/** The tables of x_tables as the kernel holds them, in the network namespace of this process. */
export interface LegacyTables {
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

/**
 * @throws Error without the right to open a raw socket
 */
export async function openLegacyTables(family: IPFamily): Promise<LegacyTables> {
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

/**
 * Where each entry begins.
 *
 * @throws Error for an entry without a length
 */
export function* entryStarts(entries: Buffer, family: IPFamily): Generator<number, void, void> {
  for (let at = 0; at < entries.length; ) {
    yield at;
    const length = entries.readUInt16LE(at + OFFSETS_AT[family] + 2);
    if (length === 0) throw new Error("an entry without a length");
    at += length;
  }
}

/**
 * The names of the chains that somebody made; those that are built in have none in the kernel.
 *
 * @throws Error for an entry without a length
 */
export function* chainNames(entries: Buffer, family: IPFamily): Generator<string, void, void> {
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
