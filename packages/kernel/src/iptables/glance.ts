import type { Table } from "@fairlead/netfilter";
import type { IPFamily } from "../family.ts";
import { findAttribute } from "../netlink/attributes.ts";
import { decodeReplies, encodeRequest, flags } from "../netlink/messages.ts";
import { datagramSize, openNetfilterSocket } from "../netlink/socket.ts";
import type { Variant } from "./client.ts";

/** What the kernel says of a table without its rules. */
export interface TableGlance {
  /**
   * Another text after a change: on the nft variant after any, in whatever table; of a legacy table after one of the number or size
   * of its rules.
   */
  readonly state: string;
  /** Of a legacy table: its rules, and some more for each chain. */
  readonly entries?: number;
}

/** Undefined: this kernel does not say, or not to this process. */
export type Glance = (table: Table) => Promise<TableGlance | undefined>;

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

/** linux/netfilter/nf_tables.h: NFNL_SUBSYS_NFTABLES, NFT_MSG_GETGEN, NFTA_GEN_ID. */
const getGeneration = (10 << 8) | 16;
const generationId = 1;

/** The generation counts transactions of all tables and families of the namespace. */
async function openGeneration(): Promise<Ask> {
  const socket = await openNetfilterSocket();
  const room = Buffer.alloc(datagramSize);
  const none = new Uint8Array();
  return async () => {
    await socket.send(encodeRequest({ type: getGeneration, flags: flags.request, addressFamily: 0, attributes: none }));
    const bytes = await socket.receive(room);
    for (const reply of decodeReplies(bytes)) {
      const id = reply.kind === "data" ? findAttribute(bytes, reply.attributes, generationId) : undefined;
      if (id !== undefined) return { state: String(bytes.readUInt32BE(id.start)) };
    }
    throw new Error("nf_tables does not tell its generation");
  };
}

/** linux/netfilter_ipv4/ip_tables.h and its IPv6 twin: [AF, level, IPT_SO_GET_INFO]. */
const infoOption = { IPv4: [2, 0, 64], IPv6: [10, 41, 64] } as const;
/** SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW. */
const rawSocket = [0o3 | 0o2000000, 255] as const;
/** struct ipt_getinfo: a name of 32 bytes, hooks, and in the end the number of entries and their size in bytes. */
const info = { bytes: 84, entries: 76, size: 80 } as const;

async function openInfo(family: IPFamily): Promise<Ask> {
  const { default: koffi } = await import("koffi");
  const libc = koffi.load(null);
  const [addressFamily, level, option] = infoOption[family];
  const descriptor: number = libc.func("int socket(int, int, int)")(addressFamily, ...rawSocket);
  const getsockopt = libc.func("int getsockopt(int, int, int, void *, void *)");
  if (descriptor < 0) throw new Error("a raw socket cannot be had");
  return (table) => {
    const room = Buffer.alloc(info.bytes);
    const length = Buffer.alloc(4);
    room.write(table);
    length.writeUInt32LE(info.bytes);
    if (getsockopt(descriptor, level, option, room, length) !== 0) throw new Error(`${table} tells nothing`);
    const entries = room.readUInt32LE(info.entries);
    return { state: `${entries} ${room.readUInt32LE(info.size)}`, entries };
  };
}
