import { addressBytes, familyOf, parseAddress } from "@fairlead/base";
import type { DestinationKey, ServerCommand, VirtualServer, VirtualServerKey } from "@fairlead/netfilter";
import { attribute, nest } from "@fairlead/netfilter/netlink";
import { addressFamilies } from "../netlink/address-families.ts";
import { encodeGenericRequest, flags } from "../netlink/messages.ts";
import {
  commands,
  destinationPart,
  forwardingNumbers,
  part,
  persistent,
  protocolNumbers,
  schedulerFlags,
  serverPart,
} from "./numbers.ts";

const commandOf = {
  "add-server": commands.newService,
  "edit-server": commands.setService,
  "delete-server": commands.deleteService,
  "add-destination": commands.newDestination,
  "edit-destination": commands.setDestination,
  "delete-destination": commands.deleteDestination,
} as const satisfies Record<ServerCommand["kind"], number>;

/**
 * What a line of `ipvsadm --restore` asks for.
 *
 * @param family number of IPVS's family of generic netlink
 * @throws RangeError for what ipvsadm would not ask the kernel for, and for options that have no field
 */
export function encodeServerCommand(family: number, command: ServerCommand): Buffer {
  return encodeGenericRequest({
    family,
    command: commandOf[command.kind],
    flags: flags.request,
    attributes: Buffer.concat(attributesOf(command)),
  });
}

/** Asks for all virtual servers. */
export function encodeServerDump(family: number): Buffer {
  return encodeDump(family, commands.getService, Buffer.alloc(0));
}

/** Asks for the destinations of one; of a server that is not there it has none. */
export function encodeDestinationDump(family: number, server: VirtualServerKey): Buffer {
  return encodeDump(family, commands.getDestination, nest(part.server, ...serverKey(server)));
}

function encodeDump(family: number, command: number, attributes: Uint8Array): Buffer {
  return encodeGenericRequest({ family, command, flags: flags.request | flags.dump, attributes });
}

function attributesOf(command: ServerCommand): readonly Buffer[] {
  const { server } = command;
  switch (command.kind) {
    case "add-server":
    case "edit-server":
      return [nest(part.server, ...serverKey(server), ...serverOptions(command.server))];
    case "delete-server":
      return [nest(part.server, ...serverKey(server))];
    case "delete-destination":
      return [
        nest(part.server, ...serverKey(server)),
        nest(part.destination, ...destinationKey(server, command.destination)),
      ];
    default: {
      const { weight, forwarding } = command.destination;
      const options = [
        attribute(destinationPart.forwarding, uint32(forwardingNumbers[forwarding])),
        attribute(destinationPart.weight, uint32(weight)),
        attribute(destinationPart.upperThreshold, uint32(0)),
        attribute(destinationPart.lowerThreshold, uint32(0)),
      ];
      return [
        nest(part.server, ...serverKey(server)),
        nest(part.destination, ...destinationKey(server, command.destination), ...options),
      ];
    }
  }
}

function serverKey({ family, protocol, address, port }: VirtualServerKey): readonly Buffer[] {
  return [
    attribute(serverPart.family, uint16(addressFamilies[family])),
    attribute(serverPart.protocol, uint16(protocolNumbers[protocol])),
    attribute(serverPart.address, bytesOf(family, address)),
    attribute(serverPart.port, portBytes(port)),
  ];
}

function destinationKey({ family }: VirtualServerKey, { address, port }: DestinationKey): readonly Buffer[] {
  return [
    attribute(destinationPart.address, bytesOf(family, address)),
    attribute(destinationPart.port, portBytes(port)),
    attribute(destinationPart.family, uint16(addressFamilies[family])),
  ];
}

const everyBit = 0xffff_ffff;

function serverOptions(server: VirtualServer): readonly Buffer[] {
  const { family, scheduler, persistenceSeconds, others = [], port } = server;
  if (others.length > 0) throw new RangeError(`options of a virtual server that have no field: ${others.join(" ")}`);
  if (port === 0 && persistenceSeconds === undefined) {
    throw new RangeError(`Zero port specified for non-persistent service ${server.address}`);
  }
  const chosen = flagBits(server) | (persistenceSeconds === undefined ? 0 : persistent);
  return [
    attribute(serverPart.scheduler, Buffer.from(`${scheduler}\0`)),
    attribute(serverPart.flags, Buffer.concat([uint32(chosen), uint32(everyBit)])),
    attribute(serverPart.timeout, uint32(persistenceSeconds ?? 0)),
    // How much of a client's address counts for persistence: all of it.
    attribute(serverPart.netmask, uint32(family === "IPv4" ? everyBit : 128)),
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
