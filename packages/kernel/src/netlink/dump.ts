import type { Range } from "@fairlead/netfilter/netlink";
import { NetlinkError } from "./error.ts";
import { decodeReplies, number } from "./messages.ts";
import { DATAGRAM_SIZE, type NetlinkSocket } from "./socket.ts";

/** A part of a listing. */
export interface Datagram {
  readonly bytes: Buffer;
  /** Where the attributes of its objects lie. */
  readonly messages: readonly Range[];
  /** What is listed changed while it was read (NLM_F_DUMP_INTR): an object may be missing, or stand twice. */
  readonly interrupted: boolean;
}

/** The number of the last listing: what is left of an earlier request has another one. */
let last = 0;

/**
 * Asks for a listing and gives it datagram by datagram. Who leaves before its end closes the socket: there is one
 * listing at a time on it.
 *
 * @param what what is asked for, in words
 * @param room where the next datagram goes, at least `DATAGRAM_SIZE`
 * @throws NetlinkError when the kernel refuses, or ends the listing early
 */
export async function* datagrams(
  socket: NetlinkSocket,
  request: Buffer,
  what: string,
  room: () => Buffer,
): AsyncGenerator<Datagram, void, void> {
  last = (last + 1) >>> 0;
  const sequence = last;
  number(request, sequence, false);
  await socket.send(request);
  for (let ended: number | undefined; ended === undefined; ) {
    const bytes = await socket.receive(room());
    const messages: Range[] = [];
    let interrupted = false;
    for (const reply of decodeReplies(bytes)) {
      if (reply.sequence !== sequence) continue;
      if (reply.kind === "result") throw new NetlinkError(what, reply.errno);
      interrupted ||= reply.interrupted;
      if (reply.kind === "done") ended = reply.errno;
      else messages.push(reply.attributes);
    }
    yield { bytes, messages, interrupted };
    if (ended !== undefined && ended !== 0) throw new NetlinkError(what, ended);
  }
}

/**
 * Asks for a listing and takes each message of it. It is read to its end also where one cannot be taken, for the
 * socket to be ready for the next.
 *
 * @param what what is asked for, in words
 * @returns whether it was interrupted: of nf_tables, a transaction of any program does that
 * @throws NetlinkError as `datagrams`; the first error of `take`
 */
export async function dump(
  socket: NetlinkSocket,
  request: Buffer,
  what: string,
  take: (bytes: Buffer, message: Range) => void,
): Promise<boolean> {
  const room = Buffer.alloc(DATAGRAM_SIZE);
  let failed: { readonly error: unknown } | undefined;
  let wasInterrupted = false;
  for await (const { bytes, messages, interrupted } of datagrams(socket, request, what, () => room)) {
    wasInterrupted ||= interrupted;
    try {
      if (failed === undefined) for (const message of messages) take(bytes, message);
    } catch (error) {
      failed = { error };
    }
  }
  if (failed !== undefined) throw failed.error;
  return wasInterrupted;
}
