/** Netlink sockets that listen, on a descriptor made by libc. */

import { closeSync, openSync } from "node:fs";
import { constants } from "node:os";
import { getSystemErrorMap } from "node:util";
import { errorCode } from "@fairlead/base";
import type Koffi from "koffi";

/** Hears what the kernel reports to all of one kind (a multicast group). */
export interface ListeningSocket {
  /** The socket receives what the kernel reports from now on. */
  join(): void;
  /** What the kernel has reported until now can still be read. */
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

/** Longest datagram of the kernel's reports (NLMSG_GOODSIZE, and single messages may be larger). */
export const LONGEST_MESSAGE = 1 << 16;

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

/** linux/netlink.h. */
const PROTOCOLS = { NETLINK_ROUTE: 0, NETLINK_NETFILTER: 12, NETLINK_GENERIC: 16 } as const;
export type Protocol = keyof typeof PROTOCOLS;

/** linux/socket.h. Nothing that reads it ever waits: replies to what was asked are there when send() is over. */
const FAMILY = 16;
const TYPE = 0o3 | 0o4000 | 0o2000000;

/**
 * Opens a netlink socket, which is what Node cannot; the kernel is its only peer.
 *
 * @param namespace file of a network namespace that this process may enter; default: its own
 * @throws NativeCodeError when there is no compiled code for this machine; NetlinkError when the kernel refuses
 */
export async function openDescriptor(protocol: Protocol, namespace?: string): Promise<number> {
  const koffi = await loadKoffi();
  const libc = koffi.load(null);
  const socket = libc.func("int socket(int, int, int)");
  const make = (): number => socket(FAMILY, TYPE, PROTOCOLS[protocol]);
  const descriptor = namespace === undefined ? make() : within(namespace, libc.func("int setns(int, int)"), make);
  if (descriptor < 0) throw new NetlinkError(`socket(AF_NETLINK, SOCK_RAW, ${protocol})`, koffi.errno());
  await connectToKernel(descriptor);
  return descriptor;
}

/** SOL_SOCKET and SOL_NETLINK with their options (asm-generic/socket.h, linux/netlink.h). */
const OPTIONS = {
  sendBuffer: [1, 7],
  sendBufferForce: [1, 32],
  receiveBuffer: [1, 8],
  receiveBufferForce: [1, 33],
  join: [270, 1],
  leave: [270, 2],
  capAck: [270, 10],
  extAck: [270, 11],
} as const;

interface SocketOptions {
  /** @returns whether the kernel took it */
  set(option: keyof typeof OPTIONS, value: number): boolean;
  get(option: keyof typeof OPTIONS): number | undefined;
}

export async function optionsOf(descriptor: number): Promise<SocketOptions> {
  const koffi = await loadKoffi();
  const setsockopt = koffi.load(null).func("int setsockopt(int, int, int, void *, uint32_t)");
  const getsockopt = koffi.load(null).func("int getsockopt(int, int, int, void *, void *)");
  return {
    set: (option, value) =>
      setsockopt(descriptor, ...OPTIONS[option], Buffer.from(Int32Array.of(value).buffer), 4) === 0,
    get(option) {
      const [value, length] = [Buffer.alloc(4), Buffer.from(Int32Array.of(4).buffer)];
      return getsockopt(descriptor, ...OPTIONS[option], value, length) === 0 ? value.readInt32LE() : undefined;
    },
  };
}

/**
 * The compiled code that netlink needs cannot be loaded: this package's optional dependencies
 * (`@koromix/koffi-linux-x64`,
 * `@koromix/koffi-linux-arm64`) are not installed, or the machine is another one. What needs no netlink works without.
 */
export class NativeCodeError extends Error {
  override readonly name = "NativeCodeError";

  constructor(cause: unknown) {
    const machine = `${process.platform}-${process.arch}`;
    super(
      `netlink is not available: cannot load @koromix/koffi-${machine}; install it with the optional dependencies of ` +
        "@fairlead/kernel (Linux on x64 or arm64)",
      { cause },
    );
  }
}

/**
 * Calls into the C library, which only netlink and locks need: loaded when first used.
 *
 * @throws NativeCodeError when there is no code for this machine
 */
export async function loadKoffi(): Promise<typeof Koffi> {
  try {
    return (await import("koffi")).default;
  } catch (error) {
    throw new NativeCodeError(error);
  }
}

/** What the kernel answered instead of doing what it was asked for. */
export class NetlinkError extends Error {
  override readonly name = "NetlinkError";
  /** The error's name, such as EPERM. */
  readonly code: string;

  /** @param what what it was asked for, in words */
  constructor(what: string, errno: number) {
    const [code, text] = getSystemErrorMap().get(-errno) ?? [`errno ${errno}`, "unknown error"];
    super(`${what}: ${code}: ${text}`);
    this.code = code;
  }
}

/** Bytes that wait to be read; in a user namespace net.core.rmem_max bounds them. */
const WAITING = 4 << 20;

/** sockaddr_nl: the sender of a datagram; the kernel's number is 0. */
const SENDER = { size: 12, portAt: 4 } as const;

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

/** sockaddr_nl of the kernel: its number is 0. */
const KERNEL = Buffer.from(Uint16Array.of(FAMILY, 0, 0, 0, 0, 0).buffer);

/**
 * Gives a socket its number, and makes the kernel its only peer: another process that sends to that number gets
 * ECONNREFUSED (netlink_getsockbyportid of net/netlink/af_netlink.c). What is sent to a group reaches it all the same.
 */
async function connectToKernel(descriptor: number): Promise<void> {
  const koffi = await loadKoffi();
  const connect = koffi.load(null).func("int connect(int, void *, uint32_t)");
  if (connect(descriptor, KERNEL, KERNEL.length) === 0) return;
  const errno = koffi.errno();
  closeSync(descriptor);
  throw new NetlinkError("connect(AF_NETLINK)", errno);
}

/** The main thread is in the other namespace for one call; a socket stays where it was made. */
function within(namespace: string, setns: (descriptor: number, kind: number) => number, make: () => number): number {
  const [own, other] = [openSync("/proc/thread-self/ns/net", "r"), openSync(namespace, "r")];
  const enter = (descriptor: number) => {
    if (setns(descriptor, 0) !== 0) throw new Error(`cannot enter or leave the network namespace ${namespace}`);
  };
  try {
    enter(other);
    const descriptor = make();
    enter(own);
    return descriptor;
  } finally {
    closeSync(own);
    closeSync(other);
  }
}
