import { addressBytes, bytesText } from "@fairlead/base";
import { findAttribute, type Range } from "@fairlead/netfilter/netlink";
import { ADDRESS_FAMILIES } from "../netlink/address-families.ts";
import { list } from "../netlink/list.ts";
import { encodeMessage, FLAGS } from "../netlink/messages.ts";
import type { NetlinkSocket } from "../netlink/socket.ts";
import { addressIn, encodeAddressDump, indexIn } from "./messages.ts";

/** What leads by a device, and what it has. */
export interface DeviceNetworks {
  /** CIDRs that the routing table `main` has by it; a default route is 0.0.0.0/0 or ::/0. */
  readonly routes: readonly string[];
  /** Its own addresses, canonical. */
  readonly addresses: readonly string[];
}

/** RTM_GETROUTE, rtmsg and its attributes (linux/rtnetlink.h). */
const GET_ROUTE = 26;
const HEADER_SIZE = 12;
/** Of the header, the first four bytes are before the range of a message. */
const HEADER_REST = 4;
const MAIN = 254;
const UNICAST = 1;
const ROUTE_PART = { destination: 1, device: 4, hops: 9 } as const;
/** rtnexthop: its length, two bytes, the number of the device; attributes follow. */
const HOP = { size: 8, deviceAt: 4 } as const;

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
