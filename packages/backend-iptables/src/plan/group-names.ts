import { socketText } from "@fairlead/base";
import type { EndpointSetName, PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import { endpointChainName, hashedName, servicePortChainName } from "@fairlead/netfilter";
import { Pager } from "./pages.ts";

/** Chains of service ports are recognized by these prefixes only. */
const PREFIXES = ["KUBE-FW-", "KUBE-EXT-", "KUBE-SVC-", "KUBE-SVL-", "KUBE-SEP-"] as const;

/** A page of a large set has its set's name and a few characters more (`pages.ts`). */
const SET_NAME_LENGTH = "KUBE-SVC-".length + 16;

/**
 * The chain that marks what does not come from this node's pods, where several cluster CIDRs have to be asked. Its text
 * can be no service port's (they hold a slash), and its prefix lets kube-proxy's cleanup remove it.
 */
export const OFF_CLUSTER = hashedName("KUBE-EXT-", "traffic from outside the cluster CIDRs");

/** Names of one group's chains (parity with kube-proxy: base32(sha256(name + protocol))). */
export interface GroupNames {
  /** By the endpoint set that they spread over. */
  readonly set: Readonly<Record<EndpointSetName, string>>;
  readonly external: string;
  readonly firewall: string;
}

export function groupNames({ name, protocol }: ServicePortGroup): GroupNames {
  // all four share the hash, which is what costs
  const cluster = servicePortChainName("SVC", name, protocol);
  const hash = cluster.slice("KUBE-SVC-".length);
  return {
    set: { cluster, local: `KUBE-SVL-${hash}` },
    external: `KUBE-EXT-${hash}`,
    firewall: `KUBE-FW-${hash}`,
  };
}

/** Those of its endpoints, too. */
export interface ChainNames extends GroupNames {
  /** Each name is made once, as its hash is what costs. */
  readonly endpoint: (endpoint: PlanEndpoint) => string;
  readonly pagers: Readonly<Record<EndpointSetName, Pager>>;
}

export function chainNames(group: ServicePortGroup): ChainNames {
  const endpoint = endpointNames(group);
  const pagers = { cluster: new Pager(group.cluster, endpoint), local: new Pager(group.local, endpoint) };
  return { ...groupNames(group), endpoint, pagers };
}

function endpointNames({ name, protocol }: ServicePortGroup): ChainNames["endpoint"] {
  const names = new Map<PlanEndpoint, string>();
  return (endpoint) => {
    const known = names.get(endpoint);
    if (known !== undefined) return known;
    const chain = endpointChainName(name, protocol, socketText(endpoint.address, endpoint.port));
    names.set(endpoint, chain);
    return chain;
  };
}

/** Whether a chain of the nat table is a service port's or an endpoint's, ours or kube-proxy's. */
export function isGroupChain(chain: string): boolean {
  return PREFIXES.some((prefix) => chain.startsWith(prefix));
}

/**
 * Where a stale chain stands when they are deleted one after the other: a chain refers to chains of higher rank only.
 */
export function deletionRank(chain: string): number {
  if (chain === OFF_CLUSTER) return PREFIXES.indexOf("KUBE-SEP-");
  if (chain.length > SET_NAME_LENGTH) return PREFIXES.indexOf("KUBE-SEP-") - 0.5;
  return PREFIXES.findIndex((prefix) => chain.startsWith(prefix));
}
