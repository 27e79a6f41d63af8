import { hostCIDR } from "@fairlead/base";
import type { IPFamily, Protocol } from "@fairlead/core";
import { type AddressMatch, comment, FIRST_PACKET, type Match, type Rule, type Target } from "@fairlead/netfilter";

/** Small makers of the parts that rules are put together from. */

export function host(address: string): AddressMatch {
  return { cidr: hostCIDR(address) };
}

/** `-p tcp … -m tcp --dport 80`, the latter among the matches where the caller wants it. */
export function protocolName(protocol: Protocol): "tcp" | "udp" | "sctp" {
  return protocol === "TCP" ? "tcp" : protocol === "UDP" ? "udp" : "sctp";
}

export function destinationPort(protocol: Protocol, port: number): Match {
  return { kind: protocolName(protocol), dport: { from: port, to: port } };
}

export function reject(family: IPFamily): Target {
  return { kind: "reject", with: family === "IPv6" ? "icmp6-port-unreachable" : "icmp-port-unreachable" };
}

/** Resets, of the TCP packets that a rule is about, those in the middle of a connection. */
export function resetting(rule: Rule): Rule {
  const flags = { negated: true, ...FIRST_PACKET };
  const matches = rule.matches.map((match) => (match.kind === "tcp" ? { ...match, flags } : match));
  return { ...rule, matches, target: { kind: "reject", with: "tcp-reset" } };
}

/** What `-d ADDRESS -p PROTOCOL … --dport PORT` selects: packets to one frontend. */
export function toAddress(address: string, protocol: Protocol, port: number, remark: string): Rule {
  return {
    destination: host(address),
    protocol: { value: protocolName(protocol) },
    matches: [comment(remark), destinationPort(protocol, port)],
  };
}
