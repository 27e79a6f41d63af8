import { closeSync } from "node:fs";
import { constants } from "node:os";
import { errorCode } from "@fairlead/base";
import { openDescriptor, type Protocol } from "./descriptor.ts";
import { NetlinkError } from "./error.ts";
import { loadKoffi } from "./koffi.ts";
import { optionsOf } from "./options.ts";

/** Hears what the kernel reports to all of one kind (a multicast group). */
export interface ListeningSocket {
  /** What is told from now on is there to be read. */
  join(): void;
  /** What was told until now can still be read. */
  leave(): void;
  /**
   * Reads the next datagram, on the calling thread.
   *
   * @returns the filled part of the buffer, empty where another process sent it to the group; undefined: there is
   *   nothing now
   * @throws NetlinkError with the code ENOBUFS when events overflowed the buffer
   */
  receive(into: Buffer): Buffer | undefined;
  close(): void;
}

/** @param groups the kinds that are heard of: numbers of `GROUPS` */
export type OpenListening = (groups: readonly number[]) => Promise<ListeningSocket>;

/** enum nfnetlink_groups of linux/netfilter/nfnetlink.h; enum rtnetlink_groups of linux/rtnetlink.h. */
export const GROUPS = {
  conntrack: [1, 2, 3],
  nftables: [7],
  links: [1],
  addresses: [5, 9],
  routes: [7, 11],
  rules: [8, 19],
} as const;
/** Bytes that wait to be read; in a user namespace net.core.rmem_max bounds them. */
const WAITING = 4 << 20;

/** sockaddr_nl: who sent a datagram; the kernel's number is 0. */
const SENDER = { size: 12, portAt: 4 } as const;

/** Longest datagram of the kernel's reports (NLMSG_GOODSIZE, and single messages may be larger). */
export const LONGEST_TOLD = 1 << 16;

/** `ListeningSocket.receive` for a caller that continues after events overflowed the buffer. */
export function receiveOrLost(socket: ListeningSocket, into: Buffer): Buffer | "lost" | undefined {
  try {
    return socket.receive(into);
  } catch (error) {
    if (errorCode(error) === "ENOBUFS") return "lost";
    throw error;
  }
}

/**
 * Opens a socket that hears of groups of nfnetlink, once it joins.
 *
 * @param namespace file of a network namespace that this process may enter; default: its own
 * @throws NativeCodeError when there is no compiled code for this machine; NetlinkError when the kernel has no
 *   nfnetlink
 */
export function openListening(groups: readonly number[], namespace?: string): Promise<ListeningSocket> {
  return openGroups("NETLINK_NETFILTER", groups, namespace);
}

/** The same of rtnetlink, for devices and their addresses. */
export function openRouteListening(groups: readonly number[], namespace?: string): Promise<ListeningSocket> {
  return openGroups("NETLINK_ROUTE", groups, namespace);
}

async function openGroups(
  protocol: Protocol,
  groups: readonly number[],
  namespace: string | undefined,
): Promise<ListeningSocket> {
  const descriptor = await openDescriptor(protocol, namespace);
  const { set } = await optionsOf(descriptor);
  if (!set("receiveBufferForce", WAITING)) set("receiveBuffer", WAITING);
  const koffi = await loadKoffi();
  const receive = koffi.load(null).func("long recvfrom(int, void *, size_t, int, void *, void *)");
  const [sender, senderSize] = [Buffer.alloc(SENDER.size), Buffer.alloc(4)];
  return {
    join() {
      for (const group of groups) set("join", group);
    },
    leave() {
      for (const group of groups) set("leave", group);
    },
    receive(into) {
      // Mostly there is nothing: Node's readSync would make an error of that, ten times a second.
      senderSize.writeUInt32LE(SENDER.size, 0);
      const length = Number(receive(descriptor, into, into.length, 0, sender, senderSize));
      if (length >= 0) return into.subarray(0, sender.readUInt32LE(SENDER.portAt) === 0 ? length : 0);
      const errno = koffi.errno();
      if (errno === constants.errno.EAGAIN) return undefined;
      throw new NetlinkError("reading events of the kernel", errno);
    },
    close: () => closeSync(descriptor),
  };
}
