import { close, read, write } from "node:fs";
import { promisify } from "node:util";
import { NetlinkError } from "./error.ts";

/** A conversation with nfnetlink in the network namespace of this process. */
export interface NetlinkSocket {
  /** Sends one datagram, of one message or several. */
  send(messages: Uint8Array): Promise<void>;
  /** Reads the next datagram into a buffer of at least `datagramSize`; the result is the filled part of it. */
  receive(into: Buffer): Promise<Buffer>;
  close(): Promise<void>;
}

export type OpenNetlink = () => Promise<NetlinkSocket>;

/** linux/socket.h, linux/netlink.h. All replies are there when send() is over, so nothing ever has to wait for one. */
const family = 16;
const type = 0o3 | 0o4000 | 0o2000000;
const protocol = 12;

/** Bytes that the kernel puts into one datagram at most. */
export const datagramSize = 32 * 1024;

/**
 * Opens a socket of AF_NETLINK, which Node cannot: the one foreign function that is called. Reading, writing and closing are
 * Node's own, off the main thread.
 *
 * @throws Error when koffi has no binary for this machine; NetlinkError when the kernel has no nfnetlink
 */
export const openNetfilterSocket: OpenNetlink = async () => {
  const { default: koffi } = await import("koffi");
  const socket = koffi.load(null).func("int socket(int, int, int)");
  const descriptor: number = socket(family, type, protocol);
  if (descriptor < 0) throw new NetlinkError("socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER)", koffi.errno());
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
};
