/** What objects depend on alongside the plan: the network, the node, the configuration and the version of HNS. */

import { inAnyOf, parseCIDRLeniently } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";

/** What of HCN's network the plan is translated with: a part of `Network` of the port. */
export interface NetworkFacts {
  readonly ID: string;
  readonly Type: string;
  readonly Policies?: readonly { readonly Type: string; readonly Settings: Readonly<Record<string, unknown>> }[];
}

interface OverlayNode {
  /** The node's address, at which other nodes reach it. */
  readonly address: string;
  readonly mac: string;
  /** An address of the pod network that packets to pods leave from. */
  readonly sourceVip: string;
}

/** What a health check of a load balancer is led to. */
interface HealthForward {
  /** Id of the endpoint that stands for the node itself. */
  readonly endpoint: string;
  /** The port of healthz, for services without a port of their own; undefined: there is none. */
  readonly healthzPort: number | undefined;
}

export interface PlanContext {
  readonly family: IPFamily;
  /** Undefined: the network is no overlay. */
  readonly overlay: (OverlayNode & { readonly subnets: readonly RemoteSubnet[] }) | undefined;
  /** Direct server return for ClusterIPs, as configured. */
  readonly dsr: boolean;
  /** Whether HNS can do it at all. */
  readonly dsrSupported: boolean;
  /** Undefined: health checks are not led anywhere. */
  readonly health: HealthForward | undefined;
}

/** Pods of another node: a RemoteSubnetRoute policy of the network. */
export interface RemoteSubnet {
  readonly contains: (address: string) => boolean;
  readonly provider: string;
}

/** Whether the pods of other nodes are reached by tunnels. */
export function isOverlay({ Type }: Pick<NetworkFacts, "Type">): boolean {
  return Type.toLowerCase() === "overlay";
}

export function remoteSubnets({ Policies = [] }: NetworkFacts): readonly RemoteSubnet[] {
  return Policies.filter(({ Type }) => Type === "RemoteSubnetRoute").flatMap(({ Settings }) => {
    const { DestinationPrefix: prefix, ProviderAddress: provider } = Settings;
    if (typeof prefix !== "string" || typeof provider !== "string") return [];
    const known = parseCIDRLeniently(prefix) !== undefined;
    return [{ provider, contains: known ? inAnyOf([prefix]) : () => false }];
  });
}

/**
 * The node that an address is on, as the network says (upstream: findRemoteSubnetProviderAddress): the last that fits
 * counts.
 */
export function providerOf(address: string, subnets: readonly RemoteSubnet[]): string | undefined {
  return subnets.findLast(({ provider, contains }) => provider === address || contains(address))?.provider;
}

/** What HNS of a version can do (hnslib: hcn/hcnglobals.go). */
export interface HnsFeatures {
  /** HcnModifyLoadBalancer. */
  readonly modify: boolean;
  /** Direct server return. */
  readonly dsr: boolean;
  /** Overlay networks with pods on other nodes. */
  readonly remoteSubnets: boolean;
  /** A network with addresses of both families. */
  readonly dualStack: boolean;
}

/** What an HNS of this version can do. */
export function featuresOf({ Major, Minor }: { readonly Major: number; readonly Minor: number }): HnsFeatures {
  const from = (major: number, minor: number) => Major > major || (Major === major && Minor >= minor);
  return {
    modify: from(15, 5),
    dsr: (Major === 9 && Minor >= 3) || from(10, 2),
    remoteSubnets: from(9, 2),
    dualStack: from(11, 10),
  };
}
