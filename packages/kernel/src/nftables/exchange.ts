/** One exchange with nf_tables: requests, their answers, errors, and the number of the ruleset's generation. */

import { getSystemErrorMap } from "node:util";
import { errorCode } from "@fairlead/base";
import { Attributes, AttributeWriter, findAttribute } from "@fairlead/netfilter/netlink";
import { type BatchObject, FAMILY_NUMBERS, type NftBatch, type NftFamily, nftNumbers } from "@fairlead/netfilter/nft";
import { decodeReplies, encodeRequest, type Reply } from "../netlink/messages.ts";
import { dump } from "../netlink/requests.ts";
import { DATAGRAM_SIZE, type NetlinkSocket, type TransactionSocket } from "../netlink/socket.ts";

/** A reply with the datagram that it came in. */
interface Received {
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

/** What the kernel takes alongside a datagram's own bytes. */
export const OVERHEAD = 4096;

/**
 * Sends a batch. The kernel answers its last message once all is committed, and each message that it refused.
 *
 * @param bytes of the finished batch
 * @throws NftablesError for the first message that was refused; nothing has changed then
 */
export async function send(socket: TransactionSocket, batch: NftBatch, bytes: Buffer): Promise<void> {
  for (const { reply } of await answers(socket, batch, bytes)) {
    if (reply.kind !== "result" || reply.errno === 0) continue;
    const { sequence, errno, text } = reply;
    throw new NftablesError(batch, batch.objectOf(sequence), errno, text);
  }
}

export function errnoOf(code: string): number {
  for (const [number, [name]] of getSystemErrorMap()) if (name === code) return -number;
  throw new RangeError(`${code} is not the name of an error`);
}

interface TableRef {
  readonly family: NftFamily;
  readonly table: string;
}

/** Why the kernel refused a transaction. */
export class NftablesError extends Error {
  override readonly name = "NftablesError";
  /** The error's name, such as EEXIST. */
  readonly code: string;
  /** What the refused message was about; undefined where the kernel refused the whole. */
  readonly object: BatchObject | undefined;

  /** @param text the kernel's own words, where it has some */
  constructor({ family, table }: TableRef, object: BatchObject | undefined, errno: number, text?: string) {
    const [code, meaning] = getSystemErrorMap().get(-errno) ?? [`errno ${errno}`, "unknown error"];
    const what = object === undefined ? "the transaction" : objectText(object);
    super(`table ${family} ${table}: ${what}: ${code}: ${text ?? meaning}`);
    this.code = code;
    this.object = object;
  }
}

/** The socket had no room for what the kernel answered. */
export function answerOfCommitLost(place: TableRef): NftablesError {
  return new NftablesError(
    place,
    undefined,
    errnoOf("ENOBUFS"),
    "the reply was lost; the change may have taken effect",
  );
}

/** In nlmsghdr: the number of the socket that asked. */
const PORT_AT = 12;

/** The number that every transaction raises, and that of the socket that asks for it. */
export async function generationOf(
  socket: NetlinkSocket,
): Promise<{ readonly generation: number; readonly port: number }> {
  for (const { reply, bytes } of await exchange(socket, encodeGet("getGeneration", "ip", undefined, false))) {
    const id = reply.kind === "data" ? findAttribute(bytes, reply.attributes, nftNumbers.GENERATION.id) : undefined;
    // The answer's header names the socket that asked.
    if (id !== undefined) return { generation: bytes.readUInt32BE(id.start), port: bytes.readUInt32LE(PORT_AT) };
  }
  throw new Error("netlink: no reply about the generation of nf_tables");
}

const { CHAIN, ELEMENTS, FLAGS, MESSAGES, RULE, SUBSYSTEM } = nftNumbers;

/** Attributes of a table's name in requests for it, its chains, rules and sets: the same number in each. */
const TABLE_NAME = 1;

/** Asks for one object, or for all of a kind. */
export function encodeGet(message: keyof typeof MESSAGES, family: NftFamily, table?: string, dump = true): Buffer {
  const attributes = new AttributeWriter(64);
  if (table !== undefined) attributes.text(TABLE_NAME, table);
  return request(message, family, FLAGS.request | (dump ? FLAGS.dump : 0), attributes);
}

/** NFPROTO_UNSPEC. */
const UNSPECIFIED = 0;

export function encodeGetTables(): Buffer {
  return requestOf("getTable", UNSPECIFIED, FLAGS.request | FLAGS.dump, new AttributeWriter(0));
}

/** Asks for one chain only. */
export function encodeGetChain(family: NftFamily, table: string, chain: string): Buffer {
  return request(
    "getChain",
    family,
    FLAGS.request,
    new AttributeWriter(128).text(TABLE_NAME, table).text(CHAIN.name, chain),
  );
}

export function encodeDumpOfSet(family: NftFamily, table: string, set: string): Buffer {
  const attributes = new AttributeWriter(64).text(ELEMENTS.table, table).text(ELEMENTS.set, set);
  return request("getElement", family, FLAGS.request | FLAGS.dump, attributes);
}

export function encodeDumpOfChain(family: NftFamily, table: string, chain: string): Buffer {
  const attributes = new AttributeWriter(128).text(RULE.table, table).text(RULE.chain, chain);
  return request("getRule", family, FLAGS.request | FLAGS.dump, attributes);
}

/** Decodes each object of a listing as it comes, so that nothing large is left to be done at once. */
export async function listing<T>(
  socket: NetlinkSocket,
  request: Buffer,
  what: string,
  decode: (of: Attributes) => readonly T[],
): Promise<readonly T[]> {
  const all: T[] = [];
  await dump(socket, request, what, (bytes, message) => {
    for (const one of decode(attributes(bytes, message))) all.push(one);
  });
  return all;
}

export function attributes(
  bytes: Buffer,
  { start, end }: { readonly start: number; readonly end: number },
): Attributes {
  return new Attributes(bytes, start, end);
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

async function answers(socket: TransactionSocket, batch: NftBatch, bytes: Buffer): Promise<readonly Received[]> {
  const room = socket.makeRoom(bytes.length + OVERHEAD) - OVERHEAD;
  try {
    return await exchange(socket, bytes);
  } catch (error) {
    // If the kernel refuses very many messages, it reports the first ones, and one is enough.
    if (error instanceof AnswersLost && error.received.some(isRefusal)) return error.received;

    throw explained(error, batch, `it has ${bytes.length} bytes; this user namespace allows at most ${room}`);
  }
}

function isRefusal({ reply }: Received): boolean {
  return reply.kind === "result" && reply.errno !== 0;
}

/** What went wrong, with what it was about. */
function explained(error: unknown, batch: NftBatch, tooLong: string): unknown {
  if (error instanceof AnswersLost) return answerOfCommitLost(batch);
  const code = errorCode(error);
  if (code === undefined) return error;
  const text = code === "EMSGSIZE" ? `${tooLong} (net.core.wmem_max)` : undefined;
  return new NftablesError(batch, undefined, errnoOf(code), text);
}

function objectText({ action, what, name }: BatchObject): string {
  const place =
    what === "rule" ? `a rule of chain ${name}` : what === "element" ? `elements of set ${name}` : `${what} ${name}`;
  return `cannot ${action} ${place}`;
}

function request(
  message: keyof typeof MESSAGES,
  family: NftFamily,
  flags: number,
  attributes: AttributeWriter,
): Buffer {
  return requestOf(message, FAMILY_NUMBERS[family], flags, attributes);
}

function requestOf(
  message: keyof typeof MESSAGES,
  addressFamily: number,
  flags: number,
  attributes: AttributeWriter,
): Buffer {
  const type = (SUBSYSTEM << 8) | MESSAGES[message];
  return encodeRequest({ type, flags, addressFamily, attributes: attributes.bytes() });
}
