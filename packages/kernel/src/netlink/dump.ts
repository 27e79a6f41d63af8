import type { Range } from "@fairlead/netfilter/netlink";
import { NetlinkError } from "./error.ts";
import { decodeReplies } from "./messages.ts";
import { DATAGRAM_SIZE, type NetlinkSocket } from "./socket.ts";

/**
 * Asks for a listing and takes each message of it.
 *
 * @param what what is asked for, in words
 * @throws NetlinkError when the kernel refuses
 */
export async function dump(
  socket: NetlinkSocket,
  request: Buffer,
  what: string,
  take: (bytes: Buffer, message: Range) => void,
): Promise<void> {
  const room = Buffer.alloc(DATAGRAM_SIZE);
  await socket.send(request);
  for (let done = false; !done; ) {
    const bytes = await socket.receive(room);
    for (const reply of decodeReplies(bytes)) {
      if (reply.kind === "result") throw new NetlinkError(what, reply.errno);
      if (reply.kind === "done") done = true;
      else take(bytes, reply.attributes);
    }
  }
}
