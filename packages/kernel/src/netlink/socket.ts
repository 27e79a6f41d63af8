import { close, closeSync, openSync, read, readSync, write, writeSync } from "node:fs";
import { promisify } from "node:util";
import { NetlinkError } from "./error.ts";

/** A conversation with the kernel by netlink, in one network namespace. */
export interface NetlinkSocket {
  /** Sends one datagram, of one message or several. */
  send(messages: Uint8Array): Promise<void>;
  /** Reads the next datagram into a buffer of at least `datagramSize`; the result is the filled part of it. */
  receive(into: Buffer): Promise<Buffer>;
  close(): Promise<void>;
}

export type OpenNetlink = () => Promise<NetlinkSocket>;

/** A socket for transactions, which are one datagram each, however large. */
export interface TransactionSocket extends NetlinkSocket {
  /**
   * Makes room for a datagram.
   *
   * @param bytes its length
   * @returns how many bytes one can have: all that were asked for with the real CAP_NET_ADMIN, net.core.wmem_max in a
   * user
   *   namespace
   */
  makeRoom(bytes: number): number;
}

export type OpenTransactions = () => Promise<TransactionSocket>;

/** linux/socket.h. All replies are there when send() is over, so nothing ever has to wait for one. */
const family = 16;
const type = 0o3 | 0o4000 | 0o2000000;

/** linux/netlink.h. */
const protocols = { NETLINK_ROUTE: 0, NETLINK_NETFILTER: 12, NETLINK_GENERIC: 16 } as const;

/** Bytes that the kernel puts into one datagram at most. */
export const datagramSize = 32 * 1024;

/**
 * Opens a socket of nfnetlink in the network namespace of this process: conntrack, ipsets.
 *
 * @throws Error when koffi has no binary for this machine; NetlinkError when the kernel has no nfnetlink
 */
export const openNetfilterSocket: OpenNetlink = () => openSocket("NETLINK_NETFILTER");

/**
 * Opens a socket of generic netlink in the network namespace of this process: virtual servers.
 *
 * @throws Error when koffi has no binary for this machine; NetlinkError when the kernel refuses
 */
export const openGenericSocket: OpenNetlink = () => openSocket("NETLINK_GENERIC");

/**
 * Opens a socket of rtnetlink in the network namespace of this process: devices and their addresses.
 *
 * @throws Error when koffi has no binary for this machine; NetlinkError when the kernel refuses
 */
export const openRouteSocket: OpenNetlink = () => openSocket("NETLINK_ROUTE");

/**
 * Opens a socket of nfnetlink for transactions of nf_tables in the network namespace of this process.
 *
 * @throws Error when koffi has no binary for this machine; NetlinkError when the kernel has no nfnetlink
 */
export const openTransactionSocket: OpenTransactions = () => openTransactions();

/**
 * The same in another network namespace, for a process that may enter it.
 *
 * @param file such as /proc/PID/ns/net
 */
export function socketsIn(
  file: string,
): Readonly<Record<"route" | "netfilter" | "generic", OpenNetlink>> & { readonly transactions: OpenTransactions } {
  return {
    transactions: () => openTransactions(file),
    route: () => openSocket("NETLINK_ROUTE", file),
    netfilter: () => openSocket("NETLINK_NETFILTER", file),
    generic: () => openSocket("NETLINK_GENERIC", file),
  };
}

async function openSocket(protocol: keyof typeof protocols, namespace?: string): Promise<NetlinkSocket> {
  const descriptor = await openDescriptor(protocol, namespace);
  return protocol === "NETLINK_GENERIC" ? hereAndNow(descriptor) : offThread(descriptor);
}

/** Opening is what Node cannot. */
async function openDescriptor(protocol: keyof typeof protocols, namespace?: string): Promise<number> {
  const { default: koffi } = await import("koffi");
  const libc = koffi.load(null);
  const socket = libc.func("int socket(int, int, int)");
  const make = (): number => socket(family, type, protocols[protocol]);
  const descriptor = namespace === undefined ? make() : within(namespace, libc.func("int setns(int, int)"), make);
  if (descriptor < 0) throw new NetlinkError(`socket(AF_NETLINK, SOCK_RAW, ${protocol})`, koffi.errno());
  return descriptor;
}

/** SOL_SOCKET and SOL_NETLINK with their options (asm-generic/socket.h, linux/netlink.h). */
const level = { socket: 1, netlink: 270 } as const;
const option = { sendBuffer: 7, sendBufferForce: 32, capAck: 10, extAck: 11 } as const;
/** What every socket can have without asking; the kernel takes its own part of it. */
const DEFAULT_ROOM = 64 * 1024;

async function openTransactions(namespace?: string): Promise<TransactionSocket> {
  const descriptor = await openDescriptor("NETLINK_NETFILTER", namespace);
  const { default: koffi } = await import("koffi");
  const setsockopt = koffi.load(null).func("int setsockopt(int, int, int, void *, uint32_t)");
  const getsockopt = koffi.load(null).func("int getsockopt(int, int, int, void *, void *)");
  const set = (at: number, name: number, value: number) =>
    setsockopt(descriptor, at, name, Buffer.from(Int32Array.of(value).buffer), 4) === 0;
  // Errors say what they are about, and don't repeat megabytes of what was sent.
  set(level.netlink, option.extAck, 1);
  set(level.netlink, option.capAck, 1);
  let room = DEFAULT_ROOM;
  return {
    ...offThread(descriptor),
    makeRoom(bytes) {
      if (bytes <= room) return room;
      if (!set(level.socket, option.sendBufferForce, bytes)) set(level.socket, option.sendBuffer, bytes);
      const [value, length] = [Buffer.alloc(4), Buffer.from(Int32Array.of(4).buffer)];
      // The kernel says twice what a datagram can have (SO_SNDBUF of socket(7)).
      if (getsockopt(descriptor, level.socket, option.sendBuffer, value, length) === 0) room = value.readInt32LE() / 2;
      return room;
    },
  };
}

/** For answers over which the kernel may take its time: it walks whole tables. */
function offThread(descriptor: number): NetlinkSocket {
  return {
    async send(messages) {
      await promisify(write)(descriptor, messages);
    },
    async receive(into) {
      const { bytesRead } = await promisify(read)(descriptor, into, 0, into.length, null);
      return into.subarray(0, bytesRead);
    },
    close: () => promisify(close)(descriptor),
  };
}

/** Milliseconds of work before the event loop gets its turn. */
const SLICE = 5;

/** For many small answers: to hand each to another thread would take several times as long as to get it. */
function hereAndNow(descriptor: number): NetlinkSocket {
  let turnAt = performance.now() + SLICE;
  return {
    async send(messages) {
      writeSync(descriptor, messages);
    },
    async receive(into) {
      if (performance.now() > turnAt) {
        await new Promise((resolve) => setImmediate(resolve));
        turnAt = performance.now() + SLICE;
      }
      return into.subarray(0, readSync(descriptor, into, 0, into.length, null));
    },
    close: async () => closeSync(descriptor),
  };
}

/** The main thread is in the other namespace for one call; a socket stays where it was made. */
function within(namespace: string, setns: (descriptor: number, kind: number) => number, make: () => number): number {
  const [own, other] = [openSync("/proc/thread-self/ns/net", "r"), openSync(namespace, "r")];
  const enter = (descriptor: number) => {
    if (setns(descriptor, 0) !== 0) throw new Error(`the network namespace ${namespace} cannot be entered or left`);
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
