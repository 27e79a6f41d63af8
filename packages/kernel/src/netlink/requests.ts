/** Requests and what answers them: dumps, acknowledged changes, the number of a generic family. */

import { nextTurn } from "@fairlead/base";
import type { RefusedCommand } from "@fairlead/netfilter";
import { attribute, findAttribute, type Range } from "@fairlead/netfilter/netlink";
import { NetlinkError } from "./listening.ts";
import { decodeReplies, encodeGenericRequest, FLAGS, number } from "./messages.ts";
import { DATAGRAM_SIZE, type NetlinkSocket } from "./socket.ts";

interface Datagram {
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

/** So many are enough while another program adds thousands of addresses. */
const READINGS = 20;

/**
 * All that a listing has, as it is at one moment: where something changed while it was read, it is read again.
 *
 * @param what what is asked for, in words
 * @param decode what one message has; none: it is left out
 * @throws NetlinkError when the kernel refuses; Error when it changes faster than it can be read; as `decode` does
 */
export async function list<T>(
  socket: NetlinkSocket,
  request: Buffer,
  what: string,
  decode: (bytes: Buffer, message: Range) => readonly T[],
): Promise<readonly T[]> {
  for (let reading = 0; reading < READINGS; reading++) {
    const all: T[] = [];
    const interrupted = await dump(socket, request, what, (bytes, message) => {
      for (const one of decode(bytes, message)) all.push(one);
    });
    if (!interrupted) return all;
    await nextTurn();
  }
  throw new Error(`netlink: ${what}: changed during each of ${READINGS} readings`);
}

/** Requests in one datagram: even if all of them are refused, the answers fit into the socket's buffer. */
export const AT_ONCE = 100;

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

/** Errors of which every other request would get the same: the caller lacks a right, or the machine has no memory. */
const OF_ALL: ReadonlySet<string> = new Set(["EPERM", "EACCES", "ENOMEM", "ENOBUFS", "EPROTONOSUPPORT", "EOPNOTSUPP"]);

/**
 * The refusals of `sendTogether` with their commands, for changes that go on after them.
 *
 * @param textOf the command in words
 * @param reasonOf what an error's number means where it is not the system's
 * @throws NetlinkError for an error that is not about one command
 */
export function refusedOf<Command>(
  refusals: readonly Refusal[],
  commands: readonly Command[],
  textOf: (command: Command) => string,
  reasonOf: (errno: number) => string | undefined = () => undefined,
): readonly RefusedCommand<Command>[] {
  return refusals.flatMap(({ at, errno }) => {
    const command = commands[at];
    if (command === undefined) return [];
    const reason = reasonOf(errno);
    const error = new NetlinkError(textOf(command), errno);
    if (OF_ALL.has(error.code)) throw error;
    return [{ command, text: reason === undefined ? error.message : `${textOf(command)}: ${reason}` }];
  });
}

/** A request that the kernel did not carry out. */
interface Refusal {
  /** Its place among those that were sent. */
  readonly at: number;
  readonly errno: number;
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
  // The kernel reports each refusal in any case; the acknowledgment of the last one means that all are done.
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

const PART = { id: 1, name: 2 } as const;

/** GENL_ID_CTRL with CTRL_CMD_GETFAMILY and its attributes (linux/genetlink.h). */
const CONTROLLER = 0x10;
const GET_FAMILY = 3;

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
