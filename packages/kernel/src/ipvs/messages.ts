import { addressBytes, familyOf, parseAddress } from "@fairlead/base";
import type { DestinationKey, ServerCommand, VirtualServer, VirtualServerKey } from "@fairlead/netfilter";
import { attribute, nest } from "@fairlead/netfilter/netlink";
import { ADDRESS_FAMILIES } from "../netlink/address-families.ts";
import { encodeGenericRequest, FLAGS } from "../netlink/messages.ts";
import {
  COMMANDS,
  DESTINATION_PART,
  FORWARDING_NUMBERS,
  PART,
  PERSISTENT,
  PROTOCOL_NUMBERS,
  SERVER_PART,
  schedulerFlags,
} from "./numbers.ts";

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

/** Asks for all virtual servers. */
export function encodeServerDump(family: number): Buffer {
  return encodeDump(family, COMMANDS.getService, Buffer.alloc(0));
}

/** Asks for the destinations of one; of a server that is not there it has none. */
export function encodeDestinationDump(family: number, server: VirtualServerKey): Buffer {
  return encodeDump(family, COMMANDS.getDestination, nest(PART.server, ...serverKey(server)));
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
