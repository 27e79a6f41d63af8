import { addressBytes, bytesText } from "@fairlead/base";
import type { AddressCommand, DeviceCommand } from "@fairlead/netfilter";
import { attribute, findAttribute, nest, type Range } from "@fairlead/netfilter/netlink";
import { ADDRESS_FAMILIES } from "../netlink/address-families.ts";
import { encodeMessage, FLAGS } from "../netlink/messages.ts";
import { ADDRESS_PART, CREATE, LINK_PART, TYPES } from "./numbers.ts";

/** ifinfomsg: family, type, index, flags, change. Zeros: the device is told by its name. */
const noLink = new Uint8Array(16);
/** ifaddrmsg: family, length, flags and scope in a byte each, index. */
const ADDRESS_HEADER_SIZE = 8;
/** Of a message's header the first four bytes are not in its range: of ifaddrmsg and of ifinfomsg so much is. */
const HEADER_REST = 4;
const DEVICE_REST = 12;
/** AF_UNSPEC: a message about a device has no address family, one about a bridge's port has. */
const UNSPECIFIED = 0;
/** IFF_UP of netdevice(7). */
const IS_UP = 1;

export function encodeDevice({ kind, device }: DeviceCommand): Buffer {
  const name = nameOf(device);
  if (kind === "delete-device") return encodeMessage(TYPES.deleteLink, FLAGS.request, noLink, name);
  const info = nest(LINK_PART.info, attribute(LINK_PART.kind, Buffer.from("dummy\0")));
  return encodeMessage(TYPES.newLink, FLAGS.request | CREATE, noLink, Buffer.concat([name, info]));
}

/**
 * @param index the device's number
 * @throws Error when it is no address
 */
export function encodeAddress({ kind, address }: AddressCommand, index: number): Buffer {
  const bytes = addressBytes(address);
  const header = Buffer.alloc(ADDRESS_HEADER_SIZE);
  header.set([bytes.length === 4 ? ADDRESS_FAMILIES.IPv4 : ADDRESS_FAMILIES.IPv6, bytes.length * 8]);
  header.writeUInt32LE(index, HEADER_REST);
  // Both: where they differ, `address` is the other end's.
  const attributes = Buffer.concat([attribute(ADDRESS_PART.local, bytes), attribute(ADDRESS_PART.address, bytes)]);
  const adds = kind === "add-address";
  const type = adds ? TYPES.newAddress : TYPES.deleteAddress;
  return encodeMessage(type, adds ? FLAGS.request | CREATE : FLAGS.request, header, attributes);
}

/** Asks for a device by its name. */
export function encodeDeviceRequest(device: string): Buffer {
  return encodeMessage(TYPES.getLink, FLAGS.request, noLink, nameOf(device));
}

/** Asks for all devices. */
export function encodeDeviceDump(): Buffer {
  return encodeMessage(TYPES.getLink, FLAGS.request | FLAGS.dump, noLink, new Uint8Array());
}

/** Asks for all addresses of all devices. */
export function encodeAddressDump(): Buffer {
  return encodeMessage(
    TYPES.getAddress,
    FLAGS.request | FLAGS.dump,
    new Uint8Array(ADDRESS_HEADER_SIZE),
    new Uint8Array(),
  );
}

/** The number of the device that a message is about: of one about a device as of one about an address. */
export function indexIn(bytes: Buffer, message: Range): number {
  return bytes.readUInt32LE(message.start);
}

/** Whether a message of a device's type is about a device, not about a bridge's port. */
export function isAboutDevice(bytes: Buffer, { start }: Range): boolean {
  return bytes[start - HEADER_REST] === UNSPECIFIED;
}

export interface DeviceHeader {
  readonly name: string;
  /** Whether it is turned on. */
  readonly up: boolean;
}

/** What a message says of a device. */
export function deviceIn(bytes: Buffer, { start, end }: Range): DeviceHeader {
  const name = findAttribute(bytes, { start: start + DEVICE_REST, end }, LINK_PART.name);
  return {
    // With the zero at its end.
    name: name === undefined ? "" : bytes.toString("utf8", name.start, name.end - 1),
    up: (bytes.readUInt32LE(start + HEADER_REST) & IS_UP) !== 0,
  };
}

/** The kind of a device (`veth`, `bridge`); undefined: one of hardware, `lo` and the like. */
export function deviceKindIn(bytes: Buffer, { start, end }: Range): string | undefined {
  const info = findAttribute(bytes, { start: start + DEVICE_REST, end }, LINK_PART.info);
  const kind = info && findAttribute(bytes, info, LINK_PART.kind);
  return kind && bytes.toString("utf8", kind.start, kind.end).replace(/\0+$/, "");
}

/** The number of the bridge, switch or bond that a device is a port of. */
export function deviceMasterIn(bytes: Buffer, { start, end }: Range): number | undefined {
  const master = findAttribute(bytes, { start: start + DEVICE_REST, end }, LINK_PART.master);
  return master && bytes.readUInt32LE(master.start);
}

export interface AddressHeader {
  /** AF_INET or AF_INET6. */
  readonly addressFamily: number;
  readonly prefixLength: number;
  /** RT_SCOPE_… of rtnetlink(7). */
  readonly scope: number;
}

/** What stands before the address in the message about it. */
export function addressHeaderIn(bytes: Buffer, { start }: Range): AddressHeader {
  const [addressFamily = 0, prefixLength = 0, , scope = 0] = bytes.subarray(start - HEADER_REST, start);
  return { addressFamily, prefixLength, scope };
}

/** The address that a message is about. */
export function addressIn(bytes: Buffer, { start, end }: Range): string | undefined {
  const within = { start: start + HEADER_REST, end };
  const found = findAttribute(bytes, within, ADDRESS_PART.local) ?? findAttribute(bytes, within, ADDRESS_PART.address);
  return found && bytesText(bytes.subarray(found.start, found.end));
}

function nameOf(device: string): Buffer {
  return attribute(LINK_PART.name, Buffer.from(`${device}\0`));
}
