import { errorCode } from "@fairlead/base";
import { decodeReplies, type Reply } from "../netlink/messages.ts";
import { DATAGRAM_SIZE, type NetlinkSocket } from "../netlink/socket.ts";

/** A reply with the datagram that it came in. */
export interface Received {
  readonly reply: Reply;
  readonly bytes: Buffer;
}

/** There were more answers than the socket could keep. */
export class AnswersLost extends Error {
  override readonly name = "AnswersLost";
  readonly code = "ENOBUFS";
  /** The first ones. */
  readonly received: readonly Received[];

  constructor(received: readonly Received[]) {
    super("netlink: ENOBUFS: replies overflowed the receive buffer");
    this.received = received;
  }
}

/**
 * Sends a request and gives all that is answered: nf_tables answers before the sending is over, so that what is not
 * there by then will not come.
 *
 * @throws AnswersLost when there were more answers than fit
 */
export async function exchange(socket: NetlinkSocket, request: Uint8Array): Promise<readonly Received[]> {
  await socket.send(request);
  const received: Received[] = [];
  let lost = false;
  for (;;) {
    const bytes = await receiveNow(socket);
    if (bytes === undefined) break;
    // Reported once, before the first ones.
    if (bytes === "lost") lost = true;
    else for (const reply of decodeReplies(bytes)) received.push({ reply, bytes });
  }
  if (lost) throw new AnswersLost(received);
  return received;
}

/** @returns undefined: nothing is there */
async function receiveNow(socket: NetlinkSocket): Promise<Buffer | "lost" | undefined> {
  try {
    return await socket.receive(Buffer.alloc(DATAGRAM_SIZE));
  } catch (error) {
    const code = errorCode(error);
    if (code === "EAGAIN") return undefined;
    if (code === "ENOBUFS") return "lost";
    throw error;
  }
}
