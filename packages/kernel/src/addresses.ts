/** A node's addresses and the service device, by netlink: what they are, and which messages change them. */

import { sleep, slices, type Timers } from "@fairlead/base";
import type { Range } from "@fairlead/netfilter/netlink";
import type { IPFamily } from "./family.ts";
import {
  addressHeaderIn,
  addressIn,
  type DeviceHeader,
  deviceIn,
  encodeAddressDump,
  encodeDeviceDump,
  indexIn,
  isAboutDevice,
  TYPES,
} from "./links.ts";
import {
  GROUPS,
  type ListeningSocket,
  LONGEST_MESSAGE,
  type OpenListening,
  receiveOrLost,
} from "./netlink/listening.ts";
import { ADDRESS_FAMILIES, decodeReplies, type Reply } from "./netlink/messages.ts";
import { list } from "./netlink/requests.ts";
import type { NetlinkSocket, OpenNetlink } from "./netlink/socket.ts";

/** One address of the node. */
export interface NodeAddress {
  /** The family of the address. */
  readonly family: IPFamily;
  /** As the kernel prints it, which is canonical. */
  readonly address: string;
  /** Length of its network's prefix in bits. */
  readonly prefixLength: number;
  /** The name of the interface that has it. */
  readonly interface: string;
  /** `global`, `link`, `host`, … */
  readonly scope: string;
  /** Whether its interface is turned on. */
  readonly up: boolean;
}

/** What came to the device of ipvs mode, kube-ipvs0, or went from it; without an address it is the device itself. */
export interface ServiceDeviceChange {
  /** The canonical address that came or went. */
  readonly address?: string;
  /** Whether it went; otherwise it came. */
  readonly gone: boolean;
}

/** How addresses are watched. */
export interface WatchOptions {
  /** Ends the iteration. */
  readonly signal: AbortSignal;
  /** Gets each change of kube-ipvs0 by any program, except for those while the source repairs itself. */
  readonly onServiceDevice?: (change: ServiceDeviceChange) => void;
}

/** The addresses of this network namespace, but for those of kube-ipvs0, which are services'. */
export interface NodeAddresses {
  /**
   * All addresses, by interface in the kernel's order.
   *
   * @throws CommandError when `ip` is missing or fails
   * @throws NetlinkError when the kernel refuses
   */
  list(): Promise<readonly NodeAddress[]>;
  /**
   * The addresses at once and again whenever they are different, until the signal aborts. Changes that come together
   * are given together. What goes wrong on the way is repaired and reported to the source's `onProblem`; it never ends
   * the watch.
   */
  watch(options: WatchOptions): AsyncIterable<readonly NodeAddress[]>;
}

export const IPVS_DEVICE = "kube-ipvs0";

/** What the kernel reports of a device or of an address. */
export interface AddressChange {
  readonly device: string;
  readonly gone: boolean;
  /** Absent: it is about the device itself. */
  readonly address?: string;
}

/** An address of another device than kube-ipvs0. */
export function isNodeChange({ device, address }: AddressChange): boolean {
  return device !== IPVS_DEVICE && address !== undefined;
}

export function serviceDeviceChange({ device, ...change }: AddressChange): ServiceDeviceChange | undefined {
  return device === IPVS_DEVICE ? change : undefined;
}

/**
 * What `parseAddresses` makes of `ip -json address`, in the same order, without a process.
 *
 * @throws NetlinkError when the kernel refuses
 */
export async function readNodeAddresses(socket: NetlinkSocket): Promise<readonly NodeAddress[]> {
  const devices = await list(socket, encodeDeviceDump(), "reading devices", (bytes, message) => {
    const device = deviceIn(bytes, message);
    return device.name === IPVS_DEVICE ? [] : [[indexIn(bytes, message), device] as const];
  });
  const byIndex = new Map(devices);
  const addresses = await list(socket, encodeAddressDump(), "reading addresses", (bytes, message) => {
    const index = indexIn(bytes, message);
    const device = byIndex.get(index);
    const address = device && addressOn(device, bytes, message);
    return address === undefined ? [] : [{ index, address }];
  });
  const byDevice = Map.groupBy(addresses, ({ index }) => index);
  return [...byIndex.keys()].flatMap((index) => (byDevice.get(index) ?? []).map(({ address }) => address));
}

/** How rtnetlink is reached. */
interface RouteNetlink {
  readonly listen: OpenListening;
  readonly open: OpenNetlink;
}

/**
 * Begins to hear of addresses and devices.
 *
 * @returns what the kernel reports from now on, until the signal aborts; undefined: a report was lost
 * @throws NetlinkError when the kernel refuses; Error when koffi has no binary for this machine
 */
export async function hearChanges(
  { listen, open }: RouteNetlink,
  timers: Timers,
  signal: AbortSignal,
): Promise<AsyncIterable<AddressChange | undefined>> {
  const socket = await listen([...GROUPS.links, ...GROUPS.addresses]);
  try {
    socket.join();
    return heard(socket, await deviceNames(open), timers, signal);
  } catch (error) {
    socket.close();
    throw error;
  }
}

/** Of rtnetlink(7), as `ip` names them; the others have numbers only. */
const SCOPES: Readonly<Record<number, string>> = { 0: "global", 200: "site", 253: "link", 254: "host", 255: "nowhere" };

function addressOn({ name, up }: DeviceHeader, bytes: Buffer, message: Range): NodeAddress | undefined {
  const { addressFamily, prefixLength, scope } = addressHeaderIn(bytes, message);
  const address = addressIn(bytes, message);
  const family = FAMILIES.get(addressFamily);
  if (family === undefined || address === undefined) return undefined;
  return { family, address, prefixLength, interface: name, scope: SCOPES[scope] ?? String(scope), up };
}

const FAMILIES = new Map(
  (["IPv4", "IPv6"] as const).map((family) => [ADDRESS_FAMILIES[family] as number, family] as const),
);

/** Milliseconds between two checks for messages of the kernel; each is a system call, also in an idle minute. */
const PAUSE_MS = 1_000;

async function* heard(
  socket: ListeningSocket,
  names: Map<number, string>,
  timers: Timers,
  signal: AbortSignal,
): AsyncGenerator<AddressChange | undefined, void, void> {
  const room = Buffer.alloc(LONGEST_MESSAGE);
  // A sync in ipvs mode adds thousands of addresses.
  const yielding = slices();
  try {
    while (!signal.aborted) {
      for (let bytes = receiveOrLost(socket, room); bytes !== undefined; bytes = receiveOrLost(socket, room)) {
        if (bytes === "lost") yield undefined;
        else yield* changesIn(bytes, names);
        await yielding();
      }
      await sleep(timers, PAUSE_MS, signal);
    }
  } finally {
    socket.close();
  }
}

async function deviceNames(open: OpenNetlink): Promise<Map<number, string>> {
  const socket = await open();
  try {
    const names = await list(socket, encodeDeviceDump(), "reading devices", (bytes, message) => [
      [indexIn(bytes, message), deviceIn(bytes, message).name] as const,
    ]);
    return new Map(names);
  } finally {
    await socket.close();
  }
}

function* changesIn(bytes: Buffer, names: Map<number, string>): Generator<AddressChange, void, void> {
  for (const reply of decodeReplies(bytes)) {
    const change = changeIn(bytes, reply, names);
    if (change !== undefined) yield change;
  }
}

/** @param names of devices by their numbers; kept up */
function changeIn(bytes: Buffer, reply: Reply, names: Map<number, string>): AddressChange | undefined {
  if (reply.kind !== "data") return undefined;
  const { message, attributes } = reply;
  const index = indexIn(bytes, attributes);
  if (message === TYPES.newAddress || message === TYPES.deleteAddress) {
    const address = addressIn(bytes, attributes);
    // A name that is not known is no service device's: that one is there before its addresses are.
    const device = names.get(index) ?? "";
    return address === undefined ? undefined : { device, gone: message === TYPES.deleteAddress, address };
  }
  if (!isAboutDevice(bytes, attributes)) return undefined;
  const { name: device } = deviceIn(bytes, attributes);
  const gone = message === TYPES.deleteLink;
  if (gone) names.delete(index);
  else names.set(index, device);
  return { device, gone };
}
