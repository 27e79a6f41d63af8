import { aligned, findAttribute, type Range } from "@fairlead/netfilter/netlink";

/** Flags of a request (linux/netlink.h). */
export const flags = { request: 0x1, acknowledge: 0x4, dump: 0x300 } as const;

/** Types that every family of messages has. */
const errorType = 2;
const doneType = 3;

/** nlmsghdr: length, type, flags, sequence number, port. */
const headerSize = 16;
const flagsAt = 6;
const sequenceAt = 8;
/**
 * nfgenmsg (address family, version, resource) or genlmsghdr (command, version, nothing); those of routes are longer.
 */
const familyHeaderSize = 4;

export interface NetfilterRequest {
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

export interface GenericRequest {
  /** The number that the kernel gave the family when its module was loaded. */
  readonly family: number;
  readonly command: number;
  readonly flags: number;
  readonly attributes: Uint8Array;
}

/** Of all families that are spoken here. */
const genericVersion = 1;

/** One message to a family of generic netlink. */
export function encodeGenericRequest({ family, command, flags, attributes }: GenericRequest): Buffer {
  return encodeMessage(family, flags, [command, genericVersion, 0, 0], attributes);
}

/** @param familyHeader what the message's family has before the attributes, in multiples of four bytes */
export function encodeMessage(
  type: number,
  flags: number,
  familyHeader: Uint8Array | readonly number[],
  attributes: Uint8Array,
): Buffer {
  const length = headerSize + familyHeader.length + attributes.length;
  const bytes = Buffer.alloc(aligned(length));
  bytes.writeUInt32LE(length, 0);
  bytes.writeUInt16LE(type, 4);
  bytes.writeUInt16LE(flags, flagsAt);
  bytes.set(familyHeader, headerSize);
  bytes.set(attributes, headerSize + familyHeader.length);
  return bytes;
}

/** Numbers a request, for its result to be told from others, and asks for a result also where all is well. */
export function number(request: Buffer, sequence: number, acknowledge: boolean): void {
  request.writeUInt32LE(sequence, sequenceAt);
  if (acknowledge) request.writeUInt16LE(request.readUInt16LE(flagsAt) | flags.acknowledge, flagsAt);
}

/**
 * data: where the attributes of an object lie, after four bytes of the family's header. result: how the request of that
 * number ended, 0 or the kernel's error number, with its own words where it has some.
 * done: a dump is complete.
 */
export type Reply =
  | { readonly kind: "data"; readonly message: number; readonly attributes: Range }
  | { readonly kind: "result"; readonly sequence: number; readonly errno: number; readonly text?: string }
  | { readonly kind: "done" };

/**
 * The messages of one datagram.
 *
 * @throws Error when it is not from the kernel
 */
export function* decodeReplies(bytes: Buffer): Generator<Reply, void, void> {
  let at = 0;
  while (at < bytes.length) {
    const length = at + headerSize <= bytes.length ? bytes.readUInt32LE(at) : 0;
    if (length < headerSize + familyHeaderSize || at + length > bytes.length) {
      throw new Error(`netlink: a message of ${length} bytes at ${at} of ${bytes.length}`);
    }
    yield decodeReply(bytes, at, at + length);
    at += aligned(length);
  }
}

function decodeReply(bytes: Buffer, start: number, end: number): Reply {
  const type = bytes.readUInt16LE(start + 4);
  if (type === doneType) return { kind: "done" };
  if (type === errorType) {
    // The number is negative there.
    const errno = -bytes.readInt32LE(start + headerSize);
    const text = extendedText(bytes, start, end);
    const result = { kind: "result", sequence: bytes.readUInt32LE(start + sequenceAt), errno } as const;
    return text === undefined ? result : { ...result, text };
  }
  return { kind: "data", message: type, attributes: { start: start + headerSize + familyHeaderSize, end } };
}

/** NLM_F_CAPPED: of the request only its header is repeated. NLM_F_ACK_TLVS: attributes follow. */
const replyFlags = { capped: 0x100, attributes: 0x200 } as const;
/** NLMSGERR_ATTR_MSG. */
const errorText = 1;

/** What an extended ACK says, if it is one (NETLINK_EXT_ACK of netlink(7)). */
function extendedText(bytes: Buffer, start: number, end: number): string | undefined {
  const set = bytes.readUInt16LE(start + flagsAt);
  if ((set & replyFlags.attributes) === 0) return undefined;
  const request = start + headerSize + 4;
  if (request + headerSize > end) return undefined;
  const repeated = (set & replyFlags.capped) === 0 ? aligned(bytes.readUInt32LE(request)) : headerSize;
  const found = findAttribute(bytes, { start: Math.min(end, request + repeated), end }, errorText);
  return found && bytes.toString("utf8", found.start, found.end).replace(/\0+$/, "");
}
