import { closeSync, openSync } from "node:fs";
import { NetlinkError } from "./error.ts";
import { loadKoffi } from "./koffi.ts";

/** linux/socket.h. Nothing that reads it ever waits: replies to what was asked are there when send() is over. */
const FAMILY = 16;
const TYPE = 0o3 | 0o4000 | 0o2000000;

/** linux/netlink.h. */
const PROTOCOLS = { NETLINK_ROUTE: 0, NETLINK_NETFILTER: 12, NETLINK_GENERIC: 16 } as const;
export type Protocol = keyof typeof PROTOCOLS;

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
