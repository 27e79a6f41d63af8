import type { PlanEndpoint, Protocol } from "@fairlead/core";
import { addressHex, type Hex, hexOf, PROTOCOLS, padded, portHex } from "@fairlead/netfilter/nft";

function protocolHex(protocol: Protocol): Hex {
  return padded(hexOf([PROTOCOLS[protocol.toLowerCase()] ?? 0]));
}

/** `ip daddr . meta l4proto . th dport` */
export function addressKey(address: string, protocol: Protocol, port: number): Hex {
  return addressHex(address) + nodePortKey(protocol, port);
}

/** `meta l4proto . th dport` */
export function nodePortKey(protocol: Protocol, port: number): Hex {
  return protocolHex(protocol) + padded(portHex(port));
}

/** `addr . port`, what a slot's element leads to. */
export function endpointValue({ address, port }: PlanEndpoint): Hex {
  return addressHex(address) + padded(portHex(port));
}

/** `ip saddr . ip daddr . meta l4proto . th dport` of a pod that reaches itself. */
export function hairpinKey({ address, port }: PlanEndpoint, protocol: Protocol): Hex {
  return addressHex(address) + addressKey(address, protocol, port);
}
