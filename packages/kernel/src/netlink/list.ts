import { nextTurn } from "@fairlead/base";
import type { Range } from "@fairlead/netfilter/netlink";
import { dump } from "./dump.ts";
import type { NetlinkSocket } from "./socket.ts";

/** Somebody adds thousands of addresses within so many. */
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
