/** Messages of IPVS' generic netlink family: virtual servers and their destinations. */

import { addressBytes, bytesText, familyOf, parseAddress } from "@fairlead/base";
import type {
  DestinationConnections,
  DestinationKey,
  ServerCommand,
  VirtualServer,
  VirtualServerKey,
} from "@fairlead/netfilter";
import { attribute, findAttribute, nest, type Range } from "@fairlead/netfilter/netlink";
import { ADDRESS_FAMILIES, encodeGenericRequest, FLAGS } from "./netlink/messages.ts";

/** The numbers of IPVS's family of generic netlink (linux/ip_vs.h). */
export const COMMANDS = {
  newService: 1,
  setService: 2,
  deleteService: 3,
  getService: 4,
  newDestination: 5,
  setDestination: 6,
  deleteDestination: 7,
  getDestination: 8,
} as const;

const COMMAND_OF = {
  "add-server": COMMANDS.newService,
  "edit-server": COMMANDS.setService,
  "delete-server": COMMANDS.deleteService,
  "add-destination": COMMANDS.newDestination,
  "edit-destination": COMMANDS.setDestination,
  "delete-destination": COMMANDS.deleteDestination,
} as const satisfies Record<ServerCommand["kind"], number>;

/**
 * The request for one command.
 *
 * @param family number of IPVS's family of generic netlink
 * @throws RangeError for what ipvsadm would not ask the kernel for, and for options that have no field
 */
export function encodeServerCommand(family: number, command: ServerCommand): Buffer {
  return encodeGenericRequest({
    family,
    command: COMMAND_OF[command.kind],
    flags: FLAGS.request,
    attributes: Buffer.concat(attributesOf(command)),
  });
}

export function encodeServerDump(family: number): Buffer {
  return encodeDump(family, COMMANDS.getService, Buffer.alloc(0));
}

const PART = { server: 1, destination: 2 } as const;

/** Asks for the destinations of one; of a server that is not there it has none. */
export function encodeDestinationDump(family: number, server: VirtualServerKey): Buffer {
  return encodeDump(family, COMMANDS.getDestination, nest(PART.server, ...serverKey(server)));
}

const SERVER_PART = {
  family: 1,
  protocol: 2,
  address: 3,
  port: 4,
  firewallMark: 5,
  scheduler: 6,
  flags: 7,
  timeout: 8,
  netmask: 9,
  engine: 11,
} as const;

/** IP_VS_SVC_F_PERSISTENT, IP_VS_SVC_F_ONEPACKET. */
const PERSISTENT = 0x1;
const ONE_PACKET = 0x4;

const PROTOCOL_NUMBERS = { TCP: 6, UDP: 17, SCTP: 132 } as const;

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

const DESTINATION_PART = {
  address: 1,
  port: 2,
  forwarding: 3,
  weight: 4,
  upperThreshold: 5,
  lowerThreshold: 6,
  active: 7,
  inactive: 8,
  family: 11,
} as const;

const FORWARDING_MASK = 7;

/** IP_VS_CONN_F_MASQ, _DROUTE, _TUNNEL; 1 is a direct route to this host itself. */
const FORWARDING_NUMBERS = { masquerade: 0, tunnel: 2, route: 3 } as const;

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

function encodeDump(family: number, command: number, attributes: Uint8Array): Buffer {
  return encodeGenericRequest({ family, command, flags: FLAGS.request | FLAGS.dump, attributes });
}

function attributesOf(command: ServerCommand): readonly Buffer[] {
  const { server } = command;
  switch (command.kind) {
    case "add-server":
    case "edit-server":
      return [nest(PART.server, ...serverKey(server), ...serverOptions(command.server))];
    case "delete-server":
      return [nest(PART.server, ...serverKey(server))];
    case "delete-destination":
      return [
        nest(PART.server, ...serverKey(server)),
        nest(PART.destination, ...destinationKey(server, command.destination)),
      ];
    default: {
      const { weight, forwarding } = command.destination;
      const options = [
        attribute(DESTINATION_PART.forwarding, uint32(FORWARDING_NUMBERS[forwarding])),
        attribute(DESTINATION_PART.weight, uint32(weight)),
        attribute(DESTINATION_PART.upperThreshold, uint32(0)),
        attribute(DESTINATION_PART.lowerThreshold, uint32(0)),
      ];
      return [
        nest(PART.server, ...serverKey(server)),
        nest(PART.destination, ...destinationKey(server, command.destination), ...options),
      ];
    }
  }
}

function serverKey({ family, protocol, address, port }: VirtualServerKey): readonly Buffer[] {
  return [
    attribute(SERVER_PART.family, uint16(ADDRESS_FAMILIES[family])),
    attribute(SERVER_PART.protocol, uint16(PROTOCOL_NUMBERS[protocol])),
    attribute(SERVER_PART.address, bytesOf(family, address)),
    attribute(SERVER_PART.port, portBytes(port)),
  ];
}

function destinationKey({ family }: VirtualServerKey, { address, port }: DestinationKey): readonly Buffer[] {
  return [
    attribute(DESTINATION_PART.address, bytesOf(family, address)),
    attribute(DESTINATION_PART.port, portBytes(port)),
    attribute(DESTINATION_PART.family, uint16(ADDRESS_FAMILIES[family])),
  ];
}

const EVERY_BIT = 0xffff_ffff;

function serverOptions(server: VirtualServer): readonly Buffer[] {
  const { family, scheduler, persistenceSeconds, others = [], port } = server;
  if (others.length > 0) throw new RangeError(`unsupported options of a virtual server: ${others.join(" ")}`);
  if (port === 0 && persistenceSeconds === undefined) {
    throw new RangeError(`Zero port specified for non-persistent service ${server.address}`);
  }
  const chosen = flagBits(server) | (persistenceSeconds === undefined ? 0 : PERSISTENT);
  return [
    attribute(SERVER_PART.scheduler, Buffer.from(`${scheduler}\0`)),
    attribute(SERVER_PART.flags, Buffer.concat([uint32(chosen), uint32(EVERY_BIT)])),
    attribute(SERVER_PART.timeout, uint32(persistenceSeconds ?? 0)),
    // How much of a client's address counts for persistence: all of it.
    attribute(SERVER_PART.netmask, uint32(family === "IPv4" ? EVERY_BIT : 128)),
  ];
}

function flagBits({ scheduler, flags: names }: VirtualServer): number {
  const known = schedulerFlags(scheduler);
  return names.reduce((bits, name) => {
    const bit = known.get(name);
    if (bit === undefined) throw new RangeError(`scheduler ${scheduler} has no flag ${name}`);
    return bits | bit;
  }, 0);
}

/** @throws RangeError when it is not an address of the family */
function bytesOf(family: VirtualServerKey["family"], text: string): Uint8Array {
  if (parseAddress(text) === undefined || familyOf(text) !== family) {
    throw new RangeError(`Different address family: ${text} is not an ${family} address`);
  }
  return addressBytes(text);
}

function portBytes(port: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(port);
  return bytes;
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
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

/** IP_VS_SVC_F_SCHED1 and the next two, by the names that ipvsadm has for a scheduler's. */
function schedulerFlags(scheduler: string): ReadonlyMap<string, number> {
  const [first, second] = scheduler === "sh" || scheduler === "mh" ? named(scheduler) : ["flag-1", "flag-2"];
  return new Map([
    [first, 0x8],
    [second, 0x10],
    ["flag-3", 0x20],
  ]);
}

function named(scheduler: string): readonly [string, string] {
  return [`${scheduler}-fallback`, `${scheduler}-port`];
}
