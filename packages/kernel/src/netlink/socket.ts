import { close, closeSync, read, readSync, write, writeSync } from "node:fs";
import { promisify } from "node:util";
import { slices } from "@fairlead/base";
import {
  type OpenListening,
  openDescriptor,
  openListening,
  openRouteListening,
  optionsOf,
  type Protocol,
} from "./listening.ts";

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
   * @returns how many bytes one can have: all that were asked for with the real CAP_NET_ADMIN, twice
   *   net.core.wmem_max in a user namespace
   */
  makeRoom(bytes: number): number;
}

export type OpenTransactions = () => Promise<TransactionSocket>;

/** Bytes that the kernel puts into one datagram at most. */
export const DATAGRAM_SIZE = 32 * 1024;

/**
 * Opens a socket of nfnetlink in the network namespace of this process: conntrack, ipsets.
 *
 * @throws NativeCodeError when there is no compiled code for this machine; NetlinkError when the kernel has no
 *   nfnetlink
 */
export const openNetfilterSocket: OpenNetlink = () => openSocket("NETLINK_NETFILTER");

/**
 * Opens a socket of generic netlink in the network namespace of this process: virtual servers.
 *
 * @throws NativeCodeError when there is no compiled code for this machine; NetlinkError when the kernel refuses
 */
export const openGenericSocket: OpenNetlink = () => openSocket("NETLINK_GENERIC");

/**
 * Opens a socket of rtnetlink in the network namespace of this process: devices and their addresses.
 *
 * @throws NativeCodeError when there is no compiled code for this machine; NetlinkError when the kernel refuses
 */
export const openRouteSocket: OpenNetlink = () => openSocket("NETLINK_ROUTE");

/**
 * Opens a socket of nfnetlink for transactions of nf_tables in the network namespace of this process.
 *
 * @throws NativeCodeError when there is no compiled code for this machine; NetlinkError when the kernel has no
 *   nfnetlink
 */
export const openTransactionSocket: OpenTransactions = () => openTransactions();

/**
 * The same in another network namespace, for a process that may enter it.
 *
 * @param file such as /proc/PID/ns/net
 */
export function socketsIn(file: string): Readonly<Record<"route" | "netfilter" | "generic", OpenNetlink>> & {
  readonly transactions: OpenTransactions;
  readonly listening: OpenListening;
  readonly routeListening: OpenListening;
} {
  return {
    listening: (groups) => openListening(groups, file),
    routeListening: (groups) => openRouteListening(groups, file),
    transactions: () => openTransactions(file),
    route: () => openSocket("NETLINK_ROUTE", file),
    netfilter: () => openSocket("NETLINK_NETFILTER", file),
    generic: () => openSocket("NETLINK_GENERIC", file),
  };
}

async function openSocket(protocol: Protocol, namespace?: string): Promise<NetlinkSocket> {
  const descriptor = await openDescriptor(protocol, namespace);
  return protocol === "NETLINK_GENERIC" ? hereAndNow(descriptor) : offThread(descriptor);
}

/** What every socket can have without asking; the kernel takes its own part of it. */
const DEFAULT_ROOM = 64 * 1024;
/** Bytes of the buffer that are not for a datagram (netlink_sendmsg). */
const KERNEL_PART = 32;

async function openTransactions(namespace?: string): Promise<TransactionSocket> {
  const descriptor = await openDescriptor("NETLINK_NETFILTER", namespace);
  const { set, get } = await optionsOf(descriptor);
  // Errors say what they are about, and don't repeat megabytes of what was sent.
  set("extAck", 1);
  set("capAck", 1);
  let room = DEFAULT_ROOM;
  return {
    ...offThread(descriptor),
    makeRoom(bytes) {
      if (bytes <= room) return room;
      if (!set("sendBufferForce", bytes)) set("sendBuffer", bytes);
      // Twice what was asked for (SO_SNDBUF of socket(7)), and netlink lets a datagram fill nearly all of it.
      room = (get("sendBuffer") ?? room + KERNEL_PART) - KERNEL_PART;
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
  const yielding = slices({ budget: SLICE });
  return {
    async send(messages) {
      writeSync(descriptor, messages);
    },
    async receive(into) {
      await yielding();
      return into.subarray(0, readSync(descriptor, into, 0, into.length, null));
    },
    close: async () => closeSync(descriptor),
  };
}
