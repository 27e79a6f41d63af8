import { familyOf, type IPFamily, parseAddress } from "@fairlead/base";
import type { Packet } from "./packet.ts";

/** A packet or an environment that cannot be. The message names the field, its value, and what would be right. */
export class PacketError extends Error {
  override readonly name = "PacketError";
}

const PORTS = "must be a whole number from 0 to 65535";

/** @throws PacketError for the first field that is wrong */
export function checkPacket(packet: Packet): void {
  const { family, protocol, source, destination, sport, dport, mark, state, dnat } = packet;
  if (family !== "IPv4" && family !== "IPv6") throw wrong("family", family, "must be IPv4 or IPv6");
  if (typeof protocol !== "string" || protocol === "") throw wrong("protocol", protocol, "must be a name, such as tcp");
  checkAddress("source", source, family);
  checkAddress("destination", destination, family);
  checkPort("sport", sport);
  checkPort("dport", dport);
  if (mark !== undefined && !isWhole(mark, 0xffffffff)) throw wrong("mark", mark, "must be a whole number of 32 bits");
  if (dnat === undefined) return;
  checkAddress("dnat.address", dnat.address, family);
  checkPort("dnat.port", dnat.port);
  if (state === undefined || state === "NEW") {
    throw wrong("dnat", dnat, "only a connection known before has a translation: state must not be NEW");
  }
}

/** @throws PacketError where a fact of the environment is not an address */
export function checkHostAddress(field: string, address: string): void {
  if (familyOfAddress(address) === undefined)
    throw new PacketError(`environment.${field}: ${text(address)} must be an IP address`);
}

/** Undefined: not an address, whatever else was passed. An IPv4-mapped one is IPv6 here, as in the packet. */
function familyOfAddress(address: unknown): IPFamily | undefined {
  return typeof address === "string" && parseAddress(address) !== undefined ? familyOf(address) : undefined;
}

function checkAddress(field: string, address: string, family: Packet["family"]): void {
  if (familyOfAddress(address) !== family) throw wrong(field, address, `must be an ${family} address`);
}

function checkPort(field: string, port: number | undefined): void {
  if (port !== undefined && !isWhole(port, 0xffff)) throw wrong(field, port, PORTS);
}

function isWhole(value: number, most: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= most;
}

function wrong(field: string, value: unknown, right: string): PacketError {
  return new PacketError(`packet.${field}: ${text(value)} ${right}`);
}

function text(value: unknown): string {
  return typeof value === "number" ? String(value) : (JSON.stringify(value) ?? String(value));
}
