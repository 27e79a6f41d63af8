import { addressBytes, bytesText } from "@fairlead/base";
import { attribute, findAttribute, nest, type Range } from "@fairlead/netfilter/netlink";
import { addressFamilies } from "../netlink/address-families.ts";
import { encodeMessage, flags } from "../netlink/messages.ts";
import type { AddressCommand, DeviceCommand } from "./command.ts";
import { addressPart, create, linkPart, types } from "./numbers.ts";

/** ifinfomsg: family, type, index, flags, change. Zeros: the device is told by its name. */
const noLink = new Uint8Array(16);
/** ifaddrmsg: family, length, flags and scope in a byte each, index. */
const addressHeaderSize = 8;
/** Of a message's header the first four bytes are not in its range. */
const headerRest = 4;

export function encodeDevice({ kind, device }: DeviceCommand): Buffer {
  const name = nameOf(device);
  if (kind === "delete-device") return encodeMessage(types.deleteLink, flags.request, noLink, name);
  const info = nest(linkPart.info, attribute(linkPart.kind, Buffer.from("dummy\0")));
  return encodeMessage(types.newLink, flags.request | create, noLink, Buffer.concat([name, info]));
}

/**
 * @param index the device's number
 * @throws Error when it is no address
 */
export function encodeAddress({ kind, address, prefixLength }: AddressCommand, index: number): Buffer {
  const bytes = addressBytes(address);
  const header = Buffer.alloc(addressHeaderSize);
  header.set([bytes.length === 4 ? addressFamilies.IPv4 : addressFamilies.IPv6, prefixLength]);
  header.writeUInt32LE(index, headerRest);
  // Both: where they differ, `address` is the other end's.
  const attributes = Buffer.concat([attribute(addressPart.local, bytes), attribute(addressPart.address, bytes)]);
  const adds = kind === "add-address";
  const type = adds ? types.newAddress : types.deleteAddress;
  return encodeMessage(type, adds ? flags.request | create : flags.request, header, attributes);
}

/** Asks for a device by its name. */
export function encodeDeviceRequest(device: string): Buffer {
  return encodeMessage(types.getLink, flags.request, noLink, nameOf(device));
}

/** Asks for all addresses of all devices. */
export function encodeAddressDump(): Buffer {
  return encodeMessage(
    types.getAddress,
    flags.request | flags.dump,
    new Uint8Array(addressHeaderSize),
    new Uint8Array(),
  );
}

/** The number of the device that a message is about: of one about a device as of one about an address. */
export function indexIn(bytes: Buffer, message: Range): number {
  return bytes.readUInt32LE(message.start);
}

/** The address that a message is about. */
export function addressIn(bytes: Buffer, { start, end }: Range): string | undefined {
  const within = { start: start + headerRest, end };
  const found = findAttribute(bytes, within, addressPart.local) ?? findAttribute(bytes, within, addressPart.address);
  return found && bytesText(bytes.subarray(found.start, found.end));
}

function nameOf(device: string): Buffer {
  return attribute(linkPart.name, Buffer.from(`${device}\0`));
}
