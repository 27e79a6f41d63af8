import { NetlinkError } from "./error.ts";
import { decodeReplies } from "./messages.ts";
import { datagramSize, type NetlinkSocket } from "./socket.ts";

/** Requests in one datagram: their acknowledgements fit into the socket's buffer several times over. */
const atOnce = 100;

/**
 * Sends requests that ask for nothing but an acknowledgement, and waits for all of these.
 *
 * @param what what they ask for, in words
 * @param forgiven name of an error that is none here
 * @throws NetlinkError for the first that was refused; those before it count, those after it may
 */
export async function sendAcknowledged(
  socket: NetlinkSocket,
  requests: readonly Uint8Array[],
  what: string,
  forgiven?: string,
): Promise<void> {
  const room = Buffer.alloc(datagramSize);
  for (let at = 0; at < requests.length; at += atOnce) {
    const together = requests.slice(at, at + atOnce);
    await socket.send(Buffer.concat(together));
    const errors = await readResults(socket, together.length, room);
    const refused = errors.map((errno) => new NetlinkError(what, errno)).find(({ code }) => code !== forgiven);
    if (refused !== undefined) throw refused;
  }
}

/** The error numbers among so many acknowledgements. */
async function readResults(socket: NetlinkSocket, count: number, room: Buffer): Promise<readonly number[]> {
  const errors: number[] = [];
  let answers = 0;
  while (answers < count) {
    for (const reply of decodeReplies(await socket.receive(room))) {
      if (reply.kind !== "result") continue;
      answers += 1;
      if (reply.errno !== 0) errors.push(reply.errno);
    }
  }
  return errors;
}
