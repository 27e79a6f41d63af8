import { attribute, findAttribute } from "@fairlead/netfilter/netlink";
import { NetlinkError } from "./error.ts";
import { decodeReplies, encodeGenericRequest, flags } from "./messages.ts";
import { datagramSize, type NetlinkSocket } from "./socket.ts";

/** GENL_ID_CTRL with CTRL_CMD_GETFAMILY and its attributes (linux/genetlink.h). */
const controller = 0x10;
const getFamily = 3;
const part = { id: 1, name: 2 } as const;

/**
 * The number of a family of generic netlink.
 *
 * @throws NetlinkError ENOENT where the kernel has none of that name, or its module is not loaded
 */
export async function genericFamily(socket: NetlinkSocket, name: string): Promise<number> {
  const attributes = attribute(part.name, Buffer.from(`${name}\0`));
  await socket.send(encodeGenericRequest({ family: controller, command: getFamily, flags: flags.request, attributes }));
  const bytes = await socket.receive(Buffer.alloc(datagramSize));
  for (const reply of decodeReplies(bytes)) {
    if (reply.kind === "result") throw new NetlinkError(`generic netlink's family ${name}`, reply.errno);
    const id = reply.kind === "data" ? findAttribute(bytes, reply.attributes, part.id) : undefined;
    if (id !== undefined) return bytes.readUInt16LE(id.start);
  }
  throw new Error(`netlink: no number for the family ${name}`);
}
