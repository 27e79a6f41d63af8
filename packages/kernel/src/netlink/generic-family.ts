import { attribute, findAttribute } from "@fairlead/netfilter/netlink";
import { NetlinkError } from "./error.ts";
import { decodeReplies, encodeGenericRequest, FLAGS } from "./messages.ts";
import { DATAGRAM_SIZE, type NetlinkSocket } from "./socket.ts";

/** GENL_ID_CTRL with CTRL_CMD_GETFAMILY and its attributes (linux/genetlink.h). */
const CONTROLLER = 0x10;
const GET_FAMILY = 3;
const PART = { id: 1, name: 2 } as const;

/**
 * The number of a family of generic netlink.
 *
 * @throws NetlinkError ENOENT where the kernel has none of that name, or its module is not loaded
 */
export async function genericFamily(socket: NetlinkSocket, name: string): Promise<number> {
  const attributes = attribute(PART.name, Buffer.from(`${name}\0`));
  await socket.send(
    encodeGenericRequest({ family: CONTROLLER, command: GET_FAMILY, flags: FLAGS.request, attributes }),
  );
  const bytes = await socket.receive(Buffer.alloc(DATAGRAM_SIZE));
  for (const reply of decodeReplies(bytes)) {
    if (reply.kind === "result") throw new NetlinkError(`generic netlink's family ${name}`, reply.errno);
    const id = reply.kind === "data" ? findAttribute(bytes, reply.attributes, PART.id) : undefined;
    if (id !== undefined) return bytes.readUInt16LE(id.start);
  }
  throw new Error(`netlink: no reply about the family ${name}`);
}
