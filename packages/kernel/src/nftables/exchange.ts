import { decodeReplies, type Reply } from "../netlink/messages.ts";
import { datagramSize, type NetlinkSocket } from "../netlink/socket.ts";

/** A reply with the datagram that it came in. */
export interface Received {
  readonly reply: Reply;
  readonly bytes: Buffer;
}

/**
 * Sends a request and gives all that is answered: nf_tables answers before the sending is over, so that what is not
 * there by then will not come.
 *
 * @throws Error with the code ENOBUFS when there were more answers than fit
 */
export async function exchange(socket: NetlinkSocket, request: Uint8Array): Promise<readonly Received[]> {
  await socket.send(request);
  const received: Received[] = [];
  for (;;) {
    const bytes = await receiveNow(socket);
    if (bytes === undefined) return received;
    for (const reply of decodeReplies(bytes)) received.push({ reply, bytes });
  }
}

/** @returns undefined: nothing is there */
async function receiveNow(socket: NetlinkSocket): Promise<Buffer | undefined> {
  try {
    return await socket.receive(Buffer.alloc(datagramSize));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EAGAIN") return undefined;
    throw error;
  }
}
