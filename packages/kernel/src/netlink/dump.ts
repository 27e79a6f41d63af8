import type { Range } from "@fairlead/netfilter/netlink";
import { NetlinkError } from "./error.ts";
import { decodeReplies } from "./messages.ts";
import { DATAGRAM_SIZE, type NetlinkSocket } from "./socket.ts";

/**
 * Asks for a listing and takes each message of it. It is read to its end also where one cannot be taken: what is left
 * would be the answer to the next question.
 *
 * @param what what is asked for, in words
 * @throws NetlinkError when the kernel refuses; the first error of `take`
 */
export async function dump(
  socket: NetlinkSocket,
  request: Buffer,
  what: string,
  take: (bytes: Buffer, message: Range) => void,
): Promise<void> {
  const room = Buffer.alloc(DATAGRAM_SIZE);
  let failed: { readonly error: unknown } | undefined;
  const attempt = (bytes: Buffer, message: Range) => {
    try {
      take(bytes, message);
    } catch (error) {
      failed = { error };
    }
  };
  await socket.send(request);
  for (let done = false; !done; ) {
    const bytes = await socket.receive(room);
    for (const reply of decodeReplies(bytes)) {
      if (reply.kind === "result") throw new NetlinkError(what, reply.errno);
      if (reply.kind === "done") {
        done = true;
        if (reply.errno !== 0) failed ??= { error: new NetlinkError(what, reply.errno) };
      } else if (failed === undefined) attempt(bytes, reply.attributes);
    }
  }
  if (failed !== undefined) throw failed.error;
}
