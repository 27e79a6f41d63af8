/** Keys of elements and their types. */

import type { PlanEndpoint, Protocol } from "@fairlead/core";
import {
  addressHex,
  type DataType,
  type Hex,
  hexOf,
  hostHex,
  type NftFamily,
  type NftSet,
  PROTOCOLS,
  padded,
  portHex,
} from "@fairlead/netfilter/nft";

const protocolHex = (protocol: Protocol): Hex => padded(hexOf([PROTOCOLS[protocol.toLowerCase()] ?? 0]));
const PROTOCOL_KEYS = { TCP: protocolHex("TCP"), UDP: protocolHex("UDP"), SCTP: protocolHex("SCTP") } as const;

/** `meta l4proto`. */
export function protocolKey(protocol: Protocol): Hex {
  return PROTOCOL_KEYS[protocol];
}

const ZERO = hostHex(0);

/** `0 . service port . endpoint`, by their numbers. */
export function rememberedValue(number: Hex, endpoint: number): Hex {
  return ZERO + number + hostHex(endpoint);
}

/** `0 . service port`. */
export function numberValue(number: number): Hex {
  return ZERO + hostHex(number);
}

const SLOTS = Array.from({ length: 1024 }, (_, slot) => hostHex(slot));

export function slotKey(slot: number): Hex {
  return SLOTS[slot] ?? hostHex(slot);
}

/** `ip daddr . meta l4proto . th dport` */
export function addressKey(address: string, protocol: Protocol, port: number): Hex {
  return addressHex(address) + nodePortKey(protocol, port);
}

/** `meta l4proto . th dport` */
export function nodePortKey(protocol: Protocol, port: number): Hex {
  return `${PROTOCOL_KEYS[protocol]}${portHex(port)}0000`;
}

/** `addr . port`, what a slot's element leads to. */
export function endpointValue({ address, port }: PlanEndpoint): Hex {
  return `${addressHex(address)}${portHex(port)}0000`;
}

/** `ip saddr . ip daddr . meta l4proto . th dport` of a pod that reaches itself. */
export function hairpinKey({ address, port }: PlanEndpoint, protocol: Protocol): Hex {
  return addressHex(address) + addressKey(address, protocol, port);
}

export type EmptySet = Omit<NftSet, "elements">;

export function addressType(family: NftFamily): DataType {
  return family === "ip" ? "ipv4_addr" : "ipv6_addr";
}

/** Of keys that `addressKey` makes. */
export function frontendKey(family: NftFamily): NftSet["key"] {
  return [addressType(family), ...nodePortKeyTypes];
}

/** Of keys that `nodePortKey` makes. */
export const nodePortKeyTypes = ["inet_proto", "inet_service"] as const satisfies NftSet["key"];
