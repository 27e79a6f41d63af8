import { findAttribute } from "@fairlead/netfilter/netlink";
import { nftNumbers } from "@fairlead/netfilter/nft";
import type { NetlinkSocket } from "../netlink/socket.ts";
import { exchange } from "./exchange.ts";
import { encodeGet } from "./requests.ts";

/** In nlmsghdr: the number of the socket that asked. */
const PORT_AT = 12;

/** The number that every transaction raises, and that of the socket that asks for it. */
export async function generationOf(
  socket: NetlinkSocket,
): Promise<{ readonly generation: number; readonly port: number }> {
  for (const { reply, bytes } of await exchange(socket, encodeGet("getGeneration", "ip", undefined, false))) {
    const id = reply.kind === "data" ? findAttribute(bytes, reply.attributes, nftNumbers.GENERATION.id) : undefined;
    // Who asks is told in the answer's header.
    if (id !== undefined) return { generation: bytes.readUInt32BE(id.start), port: bytes.readUInt32LE(PORT_AT) };
  }
  throw new Error("netlink: no reply about the generation of nf_tables");
}
