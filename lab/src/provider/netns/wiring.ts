import type { IPFamily } from "@fairlead/core";
import { ANYWHERE, address, type IpLines, route, up, veth } from "../../wire/ip-lines.ts";
import {
  FABRIC_ADDRESS,
  GATEWAY_ADDRESS,
  gateNetwork,
  nodeAddress,
  OUTSIDE_ADDRESS,
  PREFIX_LENGTH,
  SERVICE_CIDRS,
  STRANGER_ADDRESS,
} from "./addresses.ts";

/** What connects the namespaces of a cluster: every route ends in the fabric. */
export interface Wires {
  readonly families: readonly IPFamily[];
  readonly nodes: readonly { readonly name: string; readonly index: number; readonly pid: number }[];
  readonly outsidePid: number;
}

/** What lies behind the bridge that the nodes are on. */
export interface Edge {
  readonly families: readonly IPFamily[];
  /** In the order of `gateNetwork`. */
  readonly nodes: readonly Readonly<Partial<Record<IPFamily, string>>>[];
  readonly outsidePid: number;
}

/** The routing table for what comes from outside. */
export const FROM_OUTSIDE = 100;

const END = "end";

export function fabricLines({ families, nodes, outsidePid }: Wires): IpLines {
  return [
    "link add br0 type bridge",
    up("br0"),
    ...nodes.flatMap(({ name, pid }) => [...bridged(name, "eth0", pid), ...bridged(`${name}-t`, "eth1", pid)]),
    ...families.map((family) => address("br0", `${FABRIC_ADDRESS[family]}/${PREFIX_LENGTH[family]}`)),
    ...edgeLines({
      families,
      nodes: nodes.map(({ index }) => ({ IPv4: nodeAddress.IPv4(index), IPv6: nodeAddress.IPv6(index) })),
      outsidePid,
    }),
  ];
}

/** The outside, its ways to the nodes, and the end of everything else. */
export function edgeLines({ families, nodes, outsidePid }: Edge): IpLines {
  return [
    veth("outside", "eth0", outsidePid),
    up("outside"),
    // The end of everything that no rule of a node has translated; what is sent there is rejected before
    // (fabricFilter).
    `link add ${END} type veth peer name ${END}-peer`,
    up(END),
    up(`${END}-peer`),
    ...families.flatMap((family) => [
      address("outside", `${GATEWAY_ADDRESS[family]}/${PREFIX_LENGTH[family]}`),
      route(ANYWHERE[family], { dev: END }),
      route(SERVICE_CIDRS[family], { via: nodes[0]?.[family] ?? "", table: FROM_OUTSIDE }),
      ...nodes.map((addresses, at) =>
        route(gateNetwork[family](at + 1), { via: addresses[family] ?? "", table: FROM_OUTSIDE }),
      ),
    ]),
  ];
}

/**
 * For iptables-restore. A rule and not a route of type unreachable: the kernel reports those only a few times a
 * second.
 */
export const fabricFilter: Readonly<Record<IPFamily, string>> = {
  IPv4: rejectAt("icmp-host-unreachable"),
  IPv6: rejectAt("icmp6-no-route"),
};

function rejectAt(answer: string): string {
  const rules = ["FORWARD", "OUTPUT"].map((chain) => `-A ${chain} -o ${END} -j REJECT --reject-with ${answer}`);
  return ["*filter", ...rules, "COMMIT\n"].join("\n");
}

function bridged(name: string, end: string, pid: number): IpLines {
  return [veth(name, end, pid), `link set ${name} master br0`, up(name)];
}

export function nodeLines(index: number, families: readonly IPFamily[]): IpLines {
  return [
    up("eth0"),
    up("eth1"),
    ...families.flatMap((family) => [
      address("eth0", `${nodeAddress[family](index)}/${PREFIX_LENGTH[family]}`),
      route(ANYWHERE[family], { via: FABRIC_ADDRESS[family] }),
    ]),
  ];
}

export function outsideLines(families: readonly IPFamily[]): IpLines {
  return [
    up("eth0"),
    ...families.flatMap((family) => [
      address("eth0", `${OUTSIDE_ADDRESS[family]}/${PREFIX_LENGTH[family]}`),
      address("eth0", `${STRANGER_ADDRESS[family]}/${PREFIX_LENGTH[family]}`),
      route(ANYWHERE[family], { via: GATEWAY_ADDRESS[family], src: OUTSIDE_ADDRESS[family] }),
    ]),
  ];
}
