/** Network devices and the networks behind them, followed by netlink. */

import { addressBytes, bytesText, sleep, type Timers } from "@fairlead/base";
import { findAttribute, type Range } from "@fairlead/netfilter/netlink";
import {
  addressIn,
  deviceIn,
  deviceKindIn,
  deviceMasterIn,
  encodeAddressDump,
  encodeDeviceDump,
  indexIn,
  isAboutDevice,
  TYPES,
} from "./links.ts";
import { GROUPS, LONGEST_MESSAGE, type OpenListening, receiveOrLost } from "./netlink/listening.ts";
import { ADDRESS_FAMILIES, decodeReplies, encodeMessage, FLAGS } from "./netlink/messages.ts";
import { list } from "./netlink/requests.ts";
import type { NetlinkSocket, OpenNetlink } from "./netlink/socket.ts";

/** A device of a network namespace, as far as its role is concerned. */
export interface NetworkDevice {
  /** Unique in its network namespace. */
  readonly name: string;
  /** The kernel's number: one that goes and comes back under its name has another. */
  readonly index: number;
  /** `veth`, `bridge`, …; absent: a device of hardware, `lo` and the like. */
  readonly kind?: string;
  /** The number of the bridge or switch that it is a port of. */
  readonly master?: number;
  /** As `DeviceNetworks` has them; absent where they are not followed, or there are none. */
  readonly routes?: readonly string[];
  /** The same. */
  readonly addresses?: readonly string[];
}

/** What is followed in addition to devices. */
export interface FollowedDevices {
  /** Their routes and addresses. Default: no. */
  readonly networks?: boolean;
}

/** The devices of a network namespace. */
export interface DeviceFollower {
  /**
   * All devices, at once and after each change, until the signal aborts. One that goes and comes back between two
   * looks, even with its number, is missing in between: what the kernel had with it is gone.
   *
   * @throws NativeCodeError when there is no compiled code for this machine; NetlinkError when the kernel refuses
   */
  follow(signal: AbortSignal, also?: FollowedDevices): AsyncIterable<readonly NetworkDevice[]>;
}

/** How rtnetlink is reached, and the time. */
export interface DeviceFollowerOptions {
  /** For what the kernel reports. */
  readonly listen: OpenListening;
  /** For listings. */
  readonly open: OpenNetlink;
  /** Between two looks whether something was reported. */
  readonly timers: Timers;
}

/** Milliseconds between two checks for messages of the kernel; each is a system call. */
const PAUSE_MS = 250;

/** Follows the devices of the network namespace that the sockets are opened in. */
export function createDeviceFollower({ listen, open, timers }: DeviceFollowerOptions): DeviceFollower {
  return {
    async *follow(signal, { networks = false } = {}) {
      const socket = await listen(groupsOf(networks));
      const room = Buffer.alloc(LONGEST_MESSAGE);
      try {
        socket.join();
        const devices = await listDevices(open);
        yield await seen(open, devices, networks);
        const receive = () => receiveOrLost(socket, room);
        while (!signal.aborted) {
          for (const there of await look(receive, open, devices)) yield await seen(open, there, networks);
          await sleep(timers, PAUSE_MS, signal);
        }
      } finally {
        socket.close();
      }
    },
  };
}

/** What leads by a device, and what it has. */
interface DeviceNetworks {
  /** CIDRs that the routing table `main` has by it; a default route is 0.0.0.0/0 or ::/0. */
  readonly routes: readonly string[];
  /** Its own addresses, canonical. */
  readonly addresses: readonly string[];
}

/** RTM_GETROUTE, rtmsg and its attributes (linux/rtnetlink.h). */
const GET_ROUTE = 26;
const HEADER_SIZE = 12;

/**
 * By the names of devices.
 *
 * @throws NetlinkError when the kernel refuses
 */
export async function readDeviceNetworks(
  socket: NetlinkSocket,
  nameOf: (index: number) => string | undefined,
): Promise<ReadonlyMap<string, DeviceNetworks>> {
  const request = encodeMessage(GET_ROUTE, FLAGS.request | FLAGS.dump, new Uint8Array(HEADER_SIZE), new Uint8Array());
  const routes = await list(socket, request, "reading routes", routesIn);
  const addresses = await list(socket, encodeAddressDump(), "reading addresses", (bytes, message) => {
    const address = addressIn(bytes, message);
    return address === undefined ? [] : [{ index: indexIn(bytes, message), address }];
  });
  const found = new Map<string, { routes: string[]; addresses: string[] }>();
  const of = (name: string) => {
    const known = found.get(name) ?? { routes: [], addresses: [] };
    found.set(name, known);
    return known;
  };
  for (const { index, cidr } of routes) {
    const name = nameOf(index);
    if (name !== undefined) of(name).routes.push(cidr);
  }
  for (const { index, address } of addresses) {
    const name = nameOf(index);
    if (name !== undefined) of(name).addresses.push(address);
  }
  return found;
}

/**
 * Takes in what was reported since the last look.
 *
 * @returns the devices as they are now, if they changed, and before them those that have been there all along, if any
 *   went and came back
 */
async function look(
  receive: () => ReturnType<typeof receiveOrLost>,
  open: OpenNetlink,
  devices: Map<number, NetworkDevice>,
): Promise<readonly ReadonlyMap<number, NetworkDevice>[]> {
  const gone = new Set<number>();
  let changed = false;
  for (let report = receive(); report !== undefined; report = receive()) {
    if (report === "lost") {
      const now = await listDevices(open);
      devices.clear();
      for (const [index, device] of now) devices.set(index, device);
      changed = true;
    } else if (takeChanges(report, devices, gone)) changed = true;
  }
  if (!changed) return [];
  const steady = new Map([...devices].filter(([index]) => !gone.has(index)));
  return steady.size === devices.size ? [devices] : [steady, devices];
}

async function listDevices(open: OpenNetlink): Promise<Map<number, NetworkDevice>> {
  const socket = await open();
  try {
    const devices = await list(socket, encodeDeviceDump(), "reading devices", (bytes, message) => [
      deviceOf(bytes, message),
    ]);
    return new Map(devices.map((device) => [device.index, device]));
  } finally {
    await socket.close();
  }
}

function groupsOf(networks: boolean): readonly number[] {
  return networks ? [...GROUPS.links, ...GROUPS.addresses, ...GROUPS.routes] : GROUPS.links;
}

async function seen(
  open: OpenNetlink,
  devices: ReadonlyMap<number, NetworkDevice>,
  networks: boolean,
): Promise<readonly NetworkDevice[]> {
  if (!networks) return [...devices.values()];
  const socket = await open();
  try {
    const found = await readDeviceNetworks(socket, (index) => devices.get(index)?.name);
    return Array.from(devices.values(), (device) => ({ ...device, ...found.get(device.name) }));
  } finally {
    await socket.close();
  }
}

/** Of routes and addresses only comes what was asked for: any of them is a change. */
const OF_DEVICES: ReadonlySet<number> = new Set([TYPES.newLink, TYPES.deleteLink]);

/**
 * @param gone gets the numbers of those that went
 * @returns whether a device came, went or became another one: most messages are about counters and states
 */
function takeChanges(bytes: Buffer, devices: Map<number, NetworkDevice>, gone: Set<number>): boolean {
  let changed = false;
  for (const reply of decodeReplies(bytes)) {
    if (reply.kind !== "data") continue;
    if (!OF_DEVICES.has(reply.message)) changed = true;
    else if (takeChange(bytes, reply, devices, gone)) changed = true;
  }
  return changed;
}

/** As `takeChanges`, of one message about a device. */
function takeChange(
  bytes: Buffer,
  { message, attributes }: { readonly message: number; readonly attributes: Range },
  devices: Map<number, NetworkDevice>,
  gone: Set<number>,
): boolean {
  if (!isAboutDevice(bytes, attributes)) return false;
  const device = deviceOf(bytes, attributes);
  if (message === TYPES.deleteLink) {
    gone.add(device.index);
    return devices.delete(device.index);
  }
  const known = devices.get(device.index);
  devices.set(device.index, device);
  return known?.name !== device.name || known.kind !== device.kind || known.master !== device.master;
}

function deviceOf(bytes: Buffer, message: { readonly start: number; readonly end: number }): NetworkDevice {
  const [kind, master] = [deviceKindIn(bytes, message), deviceMasterIn(bytes, message)];
  return {
    name: deviceIn(bytes, message).name,
    index: indexIn(bytes, message),
    ...(kind !== undefined && { kind }),
    ...(master !== undefined && { master }),
  };
}

/** Of the header, the first four bytes are before the range of a message. */
const HEADER_REST = 4;
const MAIN = 254;
const UNICAST = 1;
const ROUTE_PART = { destination: 1, device: 4, hops: 9 } as const;
/** rtnexthop: its length, two bytes, the number of the device; attributes follow. */
const HOP = { size: 8, deviceAt: 4 } as const;

/** A route by each of its next hops. */
function routesIn(bytes: Buffer, { start, end }: Range): readonly { readonly index: number; readonly cidr: string }[] {
  const [family, length] = bytes.subarray(start - HEADER_REST, start);
  const [table, , , type] = bytes.subarray(start, start + HEADER_REST);
  const any = family === undefined ? undefined : ANY.get(family);
  if (table !== MAIN || type !== UNICAST || any === undefined) return [];
  const attributes = { start: start + HEADER_SIZE - HEADER_REST, end };
  const destination = findAttribute(bytes, attributes, ROUTE_PART.destination);
  const address = destination === undefined ? any : bytes.subarray(destination.start, destination.end);
  const cidr = `${bytesText(address)}/${length}`;
  return devicesOf(bytes, attributes).map((index) => ({ index, cidr }));
}

/** By address family. A dump has the routes of all families, those of MPLS by labels among them. */
const ANY: ReadonlyMap<number, Uint8Array> = new Map([
  [ADDRESS_FAMILIES.IPv4, addressBytes("0.0.0.0")],
  [ADDRESS_FAMILIES.IPv6, addressBytes("::")],
]);

function devicesOf(bytes: Buffer, attributes: Range): readonly number[] {
  const device = findAttribute(bytes, attributes, ROUTE_PART.device);
  if (device !== undefined) return [bytes.readUInt32LE(device.start)];
  const hops = findAttribute(bytes, attributes, ROUTE_PART.hops);
  const devices: number[] = [];
  for (let at = hops?.start ?? 0; hops !== undefined && at + HOP.size <= hops.end; ) {
    devices.push(bytes.readUInt32LE(at + HOP.deviceAt));
    at += Math.max(HOP.size, bytes.readUInt16LE(at));
  }
  return devices;
}
