import { findAttribute } from "@fairlead/netfilter/netlink";
import { nftNumbers } from "@fairlead/netfilter/nft";
import { decodeReplies, encodeRequest, FLAGS } from "../netlink/messages.ts";
import { DATAGRAM_SIZE, type NetlinkSocket } from "../netlink/socket.ts";

const { GENERATION, MESSAGES, SUBSYSTEM } = nftNumbers;

/**
 * The number that every transaction of nf_tables in the namespace raises.
 *
 * @throws Error when the kernel does not tell it
 */
export async function generation(socket: NetlinkSocket): Promise<number> {
  const type = (SUBSYSTEM << 8) | MESSAGES.getGeneration;
  await socket.send(encodeRequest({ type, flags: FLAGS.request, addressFamily: 0, attributes: new Uint8Array() }));
  const bytes = await socket.receive(Buffer.alloc(DATAGRAM_SIZE));
  for (const reply of decodeReplies(bytes)) {
    const id = reply.kind === "data" ? findAttribute(bytes, reply.attributes, GENERATION.id) : undefined;
    if (id !== undefined) return bytes.readUInt32BE(id.start);
  }
  throw new Error("nf_tables did not report its generation");
}
