import { hostCIDR } from "@fairlead/base";
import type { Frontend, IPFamily, Protocol } from "@fairlead/core";
import { comment, type Match, type Rule, type Target } from "@fairlead/netfilter";

export function reject(family: IPFamily): Target {
  return { kind: "reject", with: family === "IPv6" ? "icmp6-port-unreachable" : "icmp-port-unreachable" };
}

const PROTOCOLS = { TCP: "tcp", UDP: "udp", SCTP: "sctp" } as const satisfies Record<Protocol, string>;

/** Packets to a port, whatever the address. */
export function toPort(protocol: Protocol, port: number, remark: string): Rule {
  const kind = PROTOCOLS[protocol];
  return { protocol: { value: kind }, matches: [comment(remark), { kind, dport: { from: port, to: port } }] };
}

/** Packets to a frontend; of a node port those to its port, which only the node's own addresses lead to. */
export function toFrontend(protocol: Protocol, { address, port }: Frontend, remark: string): Rule {
  const rule = toPort(protocol, port, remark);
  return address === undefined ? rule : { destination: { cidr: hostCIDR(address) }, ...rule };
}

/** Packets to a frontend from clients that another network serves: they go on before anything happens to them. */
export function fromExcluded(protocol: Protocol, frontend: Frontend, remark: string): readonly Rule[] {
  const packets = toFrontend(protocol, frontend, remark);
  const matches = [...packets.matches, NOT_FROM_NODE];
  const { excludedClients = [] } = frontend;
  return excludedClients.map((cidr) => ({ source: { cidr }, ...packets, matches, target: { kind: "return" } }));
}

/** The node may have an address in the other network. */
const NOT_FROM_NODE: Match = { kind: "addrtype", srcType: { negated: true, value: "LOCAL" } };
