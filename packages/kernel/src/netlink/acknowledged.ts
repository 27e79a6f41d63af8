import { NetlinkError } from "./error.ts";
import { decodeReplies, number } from "./messages.ts";
import { DATAGRAM_SIZE, type NetlinkSocket } from "./socket.ts";

/** Requests in one datagram: even if all of them are refused, the answers fit into the socket's buffer. */
export const AT_ONCE = 100;

/** A request that the kernel did not carry out. */
export interface Refusal {
  /** Its place among those that were sent. */
  readonly at: number;
  readonly errno: number;
}

/**
 * Sends requests that are answered by nothing but how they ended, and waits until all have.
 *
 * @param what what they ask for, in words
 * @param ignored name of an error that does not count here
 * @throws NetlinkError for the first that was refused; those before it count, those after it may
 */
export async function sendAcknowledged(
  socket: NetlinkSocket,
  requests: readonly Buffer[],
  what: string,
  ignored?: string,
): Promise<void> {
  for (let at = 0; at < requests.length; at += AT_ONCE) {
    const refusals = await sendTogether(socket, requests.slice(at, at + AT_ONCE));
    const refused = refusals.map(({ errno }) => new NetlinkError(what, errno)).find(({ code }) => code !== ignored);
    if (refused !== undefined) throw refused;
  }
}

/**
 * Sends requests as one datagram; the kernel takes them in their order, and goes on after one that it refuses.
 *
 * @param requests at most `atOnce`
 * @returns those that were refused
 */
export async function sendTogether(socket: NetlinkSocket, requests: readonly Buffer[]): Promise<readonly Refusal[]> {
  const last = requests.length - 1;
  if (last < 0) return [];
  // What is refused is told in any case; that the last one ended tells that all have.
  for (const [at, request] of requests.entries()) number(request, at, at === last);
  await socket.send(Buffer.concat(requests));
  const room = Buffer.alloc(DATAGRAM_SIZE);
  const refusals: Refusal[] = [];
  for (let ended = false; !ended; ) {
    for (const reply of decodeReplies(await socket.receive(room))) {
      if (reply.kind !== "result") continue;
      const { sequence: at, errno } = reply;
      if (errno !== 0) refusals.push({ at, errno });
      ended = at === last;
    }
  }
  return refusals;
}
