import { encodeRequest } from "../../src/netlink/messages.ts";
import type { OpenNetlink } from "../../src/netlink/socket.ts";

/** A kernel that answers with these datagrams, in their order. */
export function scripted(...datagrams: readonly Buffer[]) {
  const sent: Buffer[] = [];
  const left = [...datagrams];
  let closed = 0;
  const open: OpenNetlink = async () => ({
    send: async (bytes) => void sent.push(Buffer.from(bytes)),
    async receive(into) {
      const next = left.shift();
      if (next === undefined) throw new Error("EAGAIN: nothing to read");
      return into.subarray(0, next.copy(into));
    },
    close: async () => {
      closed += 1;
    },
  });
  return { open, sent, closed: () => closed, unread: () => left.length };
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
