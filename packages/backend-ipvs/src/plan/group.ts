import type { ServicePortGroup } from "@fairlead/core";
import type { PlanContext } from "./context.ts";
import { servedFrontends } from "./frontends.ts";
import { type Membership, memberships } from "./members.ts";
import { type WantedServer, wantedServers } from "./servers.ts";

/** A load balancer's address that the node itself may not use: no source range of the service contains the node. */
export interface BarredAddress {
  readonly address: string;
  readonly protocol: "tcp" | "udp" | "sctp";
  readonly port: number;
}

/** All that one group needs in the kernel. */
export interface GroupObjects {
  readonly servers: readonly WantedServer[];
  /** To stand on the service device. */
  readonly addresses: readonly string[];
  readonly members: readonly Membership[];
  readonly barred: readonly BarredAddress[];
}

export const NO_OBJECTS: GroupObjects = {
  servers: [],
  addresses: [],
  members: [],
  barred: [],
};

export function groupObjects(group: ServicePortGroup, context: PlanContext): GroupObjects {
  const addresses = boundAddresses(group, context);
  return {
    servers: wantedServers(group, context),
    addresses,
    members: [
      ...memberships(group, context),
      ...addresses.map((address): Membership => ({ set: "KUBE-IPVS-IPS", member: address })),
    ],
    barred: barredAddresses(group),
  };
}

/**
 * Cluster IPs, and external addresses that the node does not have anyway. Node ports stand on addresses that are there.
 */
function boundAddresses(group: ServicePortGroup, { nodeAddresses }: PlanContext): readonly string[] {
  const addresses = servedFrontends(group).flatMap(({ reach, address }) => {
    if (address === undefined) return [];
    return reach === "internal" || !nodeAddresses.has(address) ? [address] : [];
  });
  return [...new Set(addresses)];
}

function barredAddresses(group: ServicePortGroup): readonly BarredAddress[] {
  const protocol = ({ TCP: "tcp", UDP: "udp", SCTP: "sctp" } as const)[group.protocol];
  return servedFrontends(group).flatMap(({ address, port, gate }) => {
    if (address === undefined || gate === undefined) return [];
    return gate.addresses.includes(address) ? [] : [{ address, protocol, port }];
  });
}
