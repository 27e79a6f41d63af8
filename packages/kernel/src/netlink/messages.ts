import { aligned, type Range } from "./attributes.ts";

/** Flags of a request (linux/netlink.h). */
export const flags = { request: 0x1, acknowledge: 0x4, dump: 0x300 } as const;

/** Types that every family of messages has. */
const errorType = 2;
const doneType = 3;

/** nlmsghdr (length, type, flags, sequence number, port) and nfgenmsg (address family, version, resource). */
const headerSize = 16;
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
  const length = headerSize + familyHeaderSize + attributes.length;
  const bytes = Buffer.alloc(aligned(length));
  bytes.writeUInt32LE(length, 0);
  bytes.writeUInt16LE(type, 4);
  bytes.writeUInt16LE(flags, 6);
  bytes.writeUInt8(addressFamily, headerSize);
  bytes.set(attributes, headerSize + familyHeaderSize);
  return bytes;
}

/**
 * data: where the attributes of an object lie. result: how a request ended, 0 or the kernel's error number. done: a dump is
 * complete.
 */
export type Reply =
  | { readonly kind: "data"; readonly attributes: Range }
  | { readonly kind: "result"; readonly errno: number }
  | { readonly kind: "done" };

/**
 * The messages of one datagram.
 *
 * @throws Error when it is none of the kernel's
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
  // The number is negative there.
  if (type === errorType) return { kind: "result", errno: -bytes.readInt32LE(start + headerSize) };
  return { kind: "data", attributes: { start: start + headerSize + familyHeaderSize, end } };
}
