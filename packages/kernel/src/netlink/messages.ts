/** Netlink messages: requests to nfnetlink, generic and route families, and the replies to them. */

import { aligned, findAttribute, type Range } from "@fairlead/netfilter/netlink";
import type { IPFamily } from "../family.ts";

/** Flags of a request (linux/netlink.h). */
export const FLAGS = { request: 0x1, acknowledge: 0x4, dump: 0x300 } as const;

interface NetfilterRequest {
  /** Subsystem of nfnetlink in the upper eight bits, message in the lower. */
  readonly type: number;
  readonly flags: number;
  /** AF_INET or AF_INET6. */
  readonly addressFamily: number;
  readonly attributes: Uint8Array;
}

/** One message to nfnetlink, as it goes over the socket. */
export function encodeRequest({ type, flags, addressFamily, attributes }: NetfilterRequest): Buffer {
  return encodeMessage(type, flags, [addressFamily, 0, 0, 0], attributes);
}

interface GenericRequest {
  /** The number that the kernel gave the family when its module was loaded. */
  readonly family: number;
  readonly command: number;
  readonly flags: number;
  readonly attributes: Uint8Array;
}

/** Of all families that are spoken here. */
const GENERIC_VERSION = 1;

export function encodeGenericRequest({ family, command, flags, attributes }: GenericRequest): Buffer {
  return encodeMessage(family, flags, [command, GENERIC_VERSION, 0, 0], attributes);
}

/** nlmsghdr: length, type, flags, sequence number, port. */
const HEADER_SIZE = 16;
const FLAGS_AT = 6;

/** @param familyHeader what the message's family has before the attributes, in multiples of four bytes */
export function encodeMessage(
  type: number,
  flags: number,
  familyHeader: Uint8Array | readonly number[],
  attributes: Uint8Array,
): Buffer {
  const length = HEADER_SIZE + familyHeader.length + attributes.length;
  const bytes = Buffer.alloc(aligned(length));
  bytes.writeUInt32LE(length, 0);
  bytes.writeUInt16LE(type, 4);
  bytes.writeUInt16LE(flags, FLAGS_AT);
  bytes.set(familyHeader, HEADER_SIZE);
  bytes.set(attributes, HEADER_SIZE + familyHeader.length);
  return bytes;
}

const SEQUENCE_AT = 8;

/** Numbers a request, for its result to be distinguished from others, and asks for a result also where all is well. */
export function number(request: Buffer, sequence: number, acknowledge: boolean): void {
  request.writeUInt32LE(sequence, SEQUENCE_AT);
  if (acknowledge) request.writeUInt16LE(request.readUInt16LE(FLAGS_AT) | FLAGS.acknowledge, FLAGS_AT);
}

/**
 * data: where the attributes of an object lie, after four bytes of the family's header. result: how the request of that
 * number ended, 0 or the kernel's error number, with its own words where it has some.
 * done: a dump has ended, with 0 or the error that ended it early. sequence: the number of the request. interrupted:
 * what is listed changed meanwhile.
 */
export type Reply = { readonly sequence: number } & (
  | {
      readonly kind: "data";
      readonly message: number;
      readonly attributes: Range;
      readonly interrupted: boolean;
    }
  | { readonly kind: "result"; readonly errno: number; readonly text?: string }
  | { readonly kind: "done"; readonly errno: number; readonly interrupted: boolean }
);

/**
 * nfgenmsg (address family, version, resource) or genlmsghdr (command, version, nothing); those of routes are longer.
 */
const FAMILY_HEADER_SIZE = 4;

/**
 * The messages of one datagram.
 *
 * @throws Error when it is not from the kernel
 */
export function* decodeReplies(bytes: Buffer): Generator<Reply, void, void> {
  let at = 0;
  while (at < bytes.length) {
    const length = at + HEADER_SIZE <= bytes.length ? bytes.readUInt32LE(at) : 0;
    if (length < HEADER_SIZE + FAMILY_HEADER_SIZE || at + length > bytes.length) {
      throw new Error(`netlink: a message of ${length} bytes at ${at} of ${bytes.length}`);
    }
    yield decodeReply(bytes, at, at + length);
    at += aligned(length);
  }
}

/** AF_INET and AF_INET6 of linux/socket.h; netfilter's NFPROTO_IPV4 and NFPROTO_IPV6 are the same numbers. */
export const ADDRESS_FAMILIES = { IPv4: 2, IPv6: 10 } as const satisfies Record<IPFamily, number>;

/** Types that every family of messages has. */
const ERROR_TYPE = 2;
const DONE_TYPE = 3;

/**
 * NLM_F_DUMP_INTR: what is listed changed meanwhile. NLM_F_CAPPED: of the request only its header is repeated.
 * NLM_F_ACK_TLVS: attributes follow.
 */
const REPLY_FLAGS = { interrupted: 0x10, capped: 0x100, attributes: 0x200 } as const;

function decodeReply(bytes: Buffer, start: number, end: number): Reply {
  const type = bytes.readUInt16LE(start + 4);
  const sequence = bytes.readUInt32LE(start + SEQUENCE_AT);
  const interrupted = (bytes.readUInt16LE(start + FLAGS_AT) & REPLY_FLAGS.interrupted) !== 0;
  // The number is what the dump returned, negative where it failed.
  if (type === DONE_TYPE)
    return { kind: "done", sequence, interrupted, errno: Math.max(0, -bytes.readInt32LE(start + HEADER_SIZE)) };
  if (type === ERROR_TYPE) {
    // The number is negative there.
    const errno = -bytes.readInt32LE(start + HEADER_SIZE);
    const text = extendedText(bytes, start, end);
    const result = { kind: "result", sequence, errno } as const;
    return text === undefined ? result : { ...result, text };
  }
  const attributes = { start: start + HEADER_SIZE + FAMILY_HEADER_SIZE, end };
  return { kind: "data", sequence, interrupted, message: type, attributes };
}

/** NLMSGERR_ATTR_MSG. */
const ERROR_TEXT = 1;

/** What an extended ACK says, if it is one (NETLINK_EXT_ACK of netlink(7)). */
function extendedText(bytes: Buffer, start: number, end: number): string | undefined {
  const set = bytes.readUInt16LE(start + FLAGS_AT);
  if ((set & REPLY_FLAGS.attributes) === 0) return undefined;
  const request = start + HEADER_SIZE + 4;
  if (request + HEADER_SIZE > end) return undefined;
  const repeated = (set & REPLY_FLAGS.capped) === 0 ? aligned(bytes.readUInt32LE(request)) : HEADER_SIZE;
  const found = findAttribute(bytes, { start: Math.min(end, request + repeated), end }, ERROR_TEXT);
  return found && bytes.toString("utf8", found.start, found.end).replace(/\0+$/, "");
}
