import { bytesText } from "@fairlead/base";
import type { DestinationConnections, VirtualServer } from "@fairlead/netfilter";
import { findAttribute, type Range } from "@fairlead/netfilter/netlink";
import { ADDRESS_FAMILIES } from "../netlink/address-families.ts";
import {
  DESTINATION_PART,
  FORWARDING_MASK,
  FORWARDING_NUMBERS,
  ONE_PACKET,
  PART,
  PERSISTENT,
  PROTOCOL_NUMBERS,
  SERVER_PART,
  schedulerFlags,
} from "./numbers.ts";

/**
 * A virtual server as the kernel describes it, with what `ipvsadm --save` says of it.
 *
 * @returns undefined for one by firewall mark
 * @throws Error when it is malformed
 */
export function decodeServer(bytes: Buffer, message: Range): VirtualServer | undefined {
  const within = need(findAttribute(bytes, message, PART.server));
  if (findAttribute(bytes, within, SERVER_PART.firewallMark) !== undefined) return undefined;
  const at = (type: number) => need(findAttribute(bytes, within, type)).start;
  const family = nameOfNumber(ADDRESS_FAMILIES, bytes.readUInt16LE(at(SERVER_PART.family)));
  const scheduler = textAt(bytes, need(findAttribute(bytes, within, SERVER_PART.scheduler)));
  const bits = bytes.readUInt32LE(at(SERVER_PART.flags));
  const isPersistent = (bits & PERSISTENT) !== 0;
  const others = [
    ...(isPersistent ? netmask(family, bytes, at(SERVER_PART.netmask)) : []),
    ...(isPersistent ? engine(bytes, findAttribute(bytes, within, SERVER_PART.engine)) : []),
    ...((bits & ONE_PACKET) === 0 ? [] : ["-o"]),
  ];
  return {
    family,
    protocol: nameOfNumber(PROTOCOL_NUMBERS, bytes.readUInt16LE(at(SERVER_PART.protocol))),
    address: addressAt(bytes, at(SERVER_PART.address), family),
    port: bytes.readUInt16BE(at(SERVER_PART.port)),
    scheduler,
    flags: [...schedulerFlags(scheduler)].flatMap(([name, bit]) => ((bits & bit) === 0 ? [] : [name])).sort(),
    ...(isPersistent && { persistenceSeconds: bytes.readUInt32LE(at(SERVER_PART.timeout)) }),
    ...(others.length > 0 && { others }),
  };
}

/**
 * A destination of a server of that family.
 *
 * @throws Error when it is malformed
 */
export function decodeDestination(
  bytes: Buffer,
  message: Range,
  server: Pick<VirtualServer, "family">,
): DestinationConnections {
  const within = need(findAttribute(bytes, message, PART.destination));
  const at = (type: number) => need(findAttribute(bytes, within, type)).start;
  const own = findAttribute(bytes, within, DESTINATION_PART.family);
  const family = own === undefined ? server.family : nameOfNumber(ADDRESS_FAMILIES, bytes.readUInt16LE(own.start));
  const method = bytes.readUInt32LE(at(DESTINATION_PART.forwarding)) & FORWARDING_MASK;
  return {
    address: addressAt(bytes, at(DESTINATION_PART.address), family),
    port: bytes.readUInt16BE(at(DESTINATION_PART.port)),
    weight: bytes.readInt32LE(at(DESTINATION_PART.weight)),
    // What is on this host is reached as by a route.
    forwarding: method === 1 ? "route" : nameOfNumber(FORWARDING_NUMBERS, method),
    active: bytes.readUInt32LE(at(DESTINATION_PART.active)),
    inactive: bytes.readUInt32LE(at(DESTINATION_PART.inactive)),
  };
}

function need(range: Range | undefined): Range {
  if (range === undefined)
    throw new Error("netlink: IPVS did not report an attribute of a virtual server or destination");
  return range;
}

function nameOfNumber<Key extends string>(numbers: Readonly<Record<Key, number>>, wanted: number): Key {
  for (const key in numbers) if (numbers[key] === wanted) return key;
  throw new Error(`netlink: IPVS reported an unknown number: ${wanted}`);
}

/** Texts end with a zero byte. */
function textAt(bytes: Buffer, { start, end }: Range): string {
  return bytes.toString("latin1", start, end - 1);
}

/** Addresses of both families take sixteen bytes. */
function addressAt(bytes: Buffer, at: number, family: keyof typeof ADDRESS_FAMILIES): string {
  return bytesText(bytes.subarray(at, at + (family === "IPv4" ? 4 : 16)));
}

function netmask(family: keyof typeof ADDRESS_FAMILIES, bytes: Buffer, at: number): readonly string[] {
  const text = family === "IPv4" ? bytes.subarray(at, at + 4).join(".") : String(bytes.readUInt32LE(at));
  return text === "255.255.255.255" || text === "128" ? [] : ["-M", text];
}

function engine(bytes: Buffer, range: Range | undefined): readonly string[] {
  return range === undefined ? [] : ["--pe", textAt(bytes, range)];
}
