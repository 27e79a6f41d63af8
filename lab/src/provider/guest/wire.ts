/** The way between the machine and the guest. */

import { IP_FAMILIES } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { address, type IpLines, route, up } from "../../wire.ts";
import type { Cluster, ClusterShape } from "../cluster.ts";
import { FABRIC_NETWORK } from "../netns/ground.ts";
import type { ClusterRequest } from "../provider.ts";

/** Written by the machine's side for the guest's: what it opens, and how it reaches the control plane. */
export interface GuestSettings {
  readonly request: ClusterRequest;
  readonly shape: ClusterShape;
  /** The API server's address, and its certificate as PEM. */
  readonly apiServer: {
    readonly host: string;
    readonly port: number;
    readonly ca: string;
    readonly url: string;
    readonly token: string;
  };
  /** File that the agents are given. */
  readonly proxyKubeconfig: string;
  /** File for what stands in for controllers. */
  readonly adminKubeconfig: string;
  /** Where the machine's side waits for the guest to connect. */
  readonly host: string;
  readonly port: number;
}

/** What the guest's side gives the machine's. */
export type GuestCluster = Pick<Cluster, "nodes" | "outside" | "startPod" | "state">;

/**
 * The way between the guest's cluster and the machine's side, where the control plane is: a tap device in a namespace
 * of the machine, `vec0` in the guest, and a pair of interfaces from there to the cluster's fabric.
 */
export const TAP = "uml0";
const VECTOR = "vec0";
const TO_FABRIC = "fabric";
const FROM_FABRIC = "control";

type Ends = Readonly<Record<IPFamily, string>>;

/** The machine's end. The API server is there. */
export const MACHINE_END: Ends = { IPv4: "172.31.0.1", IPv6: "fd00:31::1" };
const GUEST_END: Ends = { IPv4: "172.31.0.2", IPv6: "fd00:31::2" };
const NEAR_END: Ends = { IPv4: "172.29.0.1", IPv6: "fd00:29::1" };
const FABRIC_END: Ends = { IPv4: "172.29.0.2", IPv6: "fd00:29::2" };

const LINK_NETWORK: Ends = { IPv4: "172.31.0.0/24", IPv6: "fd00:31::/64" };
const INNER_NETWORK: Ends = { IPv4: "172.29.0.0/24", IPv6: "fd00:29::/64" };
const LENGTH: Readonly<Record<IPFamily, number>> = { IPv4: 24, IPv6: 64 };

const at = (ends: Ends, dev: string) => IP_FAMILIES.map((family) => address(dev, `${ends[family]}/${LENGTH[family]}`));

/** In the machine's namespace. */
export const machineLines: IpLines = [
  `tuntap add dev ${TAP} mode tap`,
  up(TAP),
  ...at(MACHINE_END, TAP),
  ...IP_FAMILIES.flatMap((family) =>
    [FABRIC_NETWORK, INNER_NETWORK].map((network) => route(network[family], { via: GUEST_END[family] })),
  ),
];

/** In the guest's first namespace. */
export const guestLines: IpLines = [up(VECTOR), ...at(GUEST_END, VECTOR)];

/** There too, once there is a fabric. */
export function fabricPair(fabric: number): IpLines {
  return [
    `link add ${TO_FABRIC} type veth peer name ${FROM_FABRIC} netns ${fabric}`,
    up(TO_FABRIC),
    ...at(NEAR_END, TO_FABRIC),
    ...IP_FAMILIES.map((family) => route(FABRIC_NETWORK[family], { via: FABRIC_END[family] })),
  ];
}

/** In the cluster's fabric. */
export const fabricEndLines: IpLines = [
  up(FROM_FABRIC),
  ...at(FABRIC_END, FROM_FABRIC),
  ...IP_FAMILIES.map((family) => route(LINK_NETWORK[family], { via: NEAR_END[family] })),
];
