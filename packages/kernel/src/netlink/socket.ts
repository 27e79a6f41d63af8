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
 * The same in another network namespace, for a process that may enter it.
 *
 * @param file such as /proc/PID/ns/net
 */
export function socketsIn(file: string): Readonly<Record<"route" | "netfilter" | "generic", OpenNetlink>> {
  return {
    route: () => openSocket("NETLINK_ROUTE", file),
    netfilter: () => openSocket("NETLINK_NETFILTER", file),
    generic: () => openSocket("NETLINK_GENERIC", file),
  };
}

/** Opening is what Node cannot. */
async function openSocket(protocol: keyof typeof protocols, namespace?: string): Promise<NetlinkSocket> {
  const { default: koffi } = await import("koffi");
  const libc = koffi.load(null);
  const socket = libc.func("int socket(int, int, int)");
  const make = (): number => socket(family, type, protocols[protocol]);
  const descriptor = namespace === undefined ? make() : within(namespace, libc.func("int setns(int, int)"), make);
  if (descriptor < 0) throw new NetlinkError(`socket(AF_NETLINK, SOCK_RAW, ${protocol})`, koffi.errno());
  return protocol === "NETLINK_GENERIC" ? hereAndNow(descriptor) : offThread(descriptor);
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
