import { encodeRequest } from "../../src/netlink/messages.ts";
import type { OpenNetlink } from "../../src/netlink/socket.ts";

/**
 * A kernel that answers with these datagrams, in their order. Messages without a number get that of the request that
 * was sent last.
 */
export function scripted(...datagrams: readonly Buffer[]) {
  const sent: Buffer[] = [];
  const left = [...datagrams];
  let closed = 0;
  const open: OpenNetlink = async () => ({
    send: async (bytes) => void sent.push(Buffer.from(bytes)),
    async receive(into) {
      const next = left.shift();
      if (next === undefined) throw new Error("EAGAIN: nothing to read");
      return into.subarray(0, answered(next, sent.at(-1)).copy(into));
    },
    close: async () => {
      closed += 1;
    },
  });
  return { open, sent, closed: () => closed, unread: () => left.length };
}

const SEQUENCE_AT = 8;

/** A datagram whose messages without a number are given that of the request. */
export function answered(datagram: Buffer, request: Buffer | undefined): Buffer {
  const sequence = request?.readUInt32LE(SEQUENCE_AT) ?? 0;
  const bytes = Buffer.from(datagram);
  for (let at = 0; at + SEQUENCE_AT + 4 <= bytes.length; at += Math.max(4, (bytes.readUInt32LE(at) + 3) & ~3)) {
    if (bytes.readUInt32LE(at + SEQUENCE_AT) === 0) bytes.writeUInt32LE(sequence, at + SEQUENCE_AT);
  }
  return bytes;
}

export function message(type: number, attributes: Uint8Array): Buffer {
  return encodeRequest({ type, flags: 0, addressFamily: 2, attributes });
}

export const done = message(3, Buffer.alloc(0));

/**
 * How the request of that number ended: NLMSG_ERROR begins with the negative number where other messages have the
 * family.
 */
export function result(errno: number, sequence = 0): Buffer {
  const bytes = message(2, Buffer.alloc(16));
  bytes.writeUInt32LE(sequence, 8);
  bytes.writeInt32LE(-errno, 16);
  return bytes;
}
