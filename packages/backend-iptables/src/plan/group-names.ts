/** Names of chains and their pages. */

import { socketText } from "@fairlead/base";
import type { EndpointSetName, Frontend, PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import { endpointChainName, hashedName, servicePortChainName } from "@fairlead/netfilter";

/**
 * The chain that marks what does not come from this node's pods, where several cluster CIDRs have to be asked. Its text
 * can be no service port's (they hold a slash), and its prefix lets kube-proxy's cleanup remove it.
 */
export const OFF_CLUSTER = hashedName("KUBE-EXT-", "traffic from outside the cluster CIDRs");

/** Names of one group's chains (parity with kube-proxy: base32(sha256(name + protocol))). */
export interface GroupNames {
  readonly set: Readonly<Record<EndpointSetName, string>>;
  readonly external: string;
  /** Of the sources that a kind of frontend lets in. */
  readonly firewall: (kind: Frontend["kind"]) => string;
}

export function groupNames({ name, protocol }: ServicePortGroup): GroupNames {
  // all four share the hash, which is what costs
  const cluster = servicePortChainName("SVC", name, protocol);
  const hash = cluster.slice("KUBE-SVC-".length);
  return {
    set: { cluster, local: `KUBE-SVL-${hash}` },
    external: `KUBE-EXT-${hash}`,
    firewall: (kind) => FIREWALLS[kind]?.(name, protocol) ?? `KUBE-FW-${hash}`,
  };
}

/** Kinds with source ranges of their own, which kube-proxy has for load balancers only. No port's name has a space. */
const FIREWALLS: { readonly [Kind in Frontend["kind"]]?: (name: string, protocol: string) => string } = {
  "node-port": (name, protocol) => servicePortChainName("FW", `${name} node port`, protocol),
};

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

/** Of chains of service ports, in the order in which they refer to each other. */
const PREFIXES = ["KUBE-FW-", "KUBE-EXT-", "KUBE-XLB-", "KUBE-SVC-", "KUBE-SVL-", "KUBE-SEP-"] as const;

/** A page of a large set has its set's name and a few characters more (`pages.ts`). */
const SET_NAME_LENGTH = "KUBE-SVC-".length + 16;

/**
 * Where a stale chain stands when they are deleted one after the other: a chain refers to chains of higher rank only.
 */
export function deletionRank(chain: string): number {
  if (chain === OFF_CLUSTER) return PREFIXES.indexOf("KUBE-SEP-");
  if (chain.length > SET_NAME_LENGTH) return PREFIXES.indexOf("KUBE-SEP-") - 0.5;
  return PREFIXES.findIndex((prefix) => chain.startsWith(prefix));
}

/** Some of a large set's endpoints, which have chains of their own to be chosen from. */
export interface Page {
  readonly endpoints: readonly PlanEndpoint[];
  /** Chooses one of them. */
  readonly chain: string;
  /** Under affinity: lets clients pass that have been at one of them lately, and no others. */
  readonly knownChain: string;
}

/**
 * Names that others rely on: operators' dashboards, kubelet, CNIs and kube-proxy's own cleanup. They are kube-proxy's.
 */

export const SERVICES = "KUBE-SERVICES";
export const EXTERNAL_SERVICES = "KUBE-EXTERNAL-SERVICES";
export const NODE_PORTS = "KUBE-NODEPORTS";
export const PROXY_FIREWALL = "KUBE-PROXY-FIREWALL";
export const FORWARD = "KUBE-FORWARD";
export const POSTROUTING = "KUBE-POSTROUTING";
export const MARK_MASQ = "KUBE-MARK-MASQ";
export const CANARY = "KUBE-PROXY-CANARY";
/** Kubelet's chain; this backend adds its rule against packets for 127.0.0.0/8 from outside, and never removes it. */
export const KUBELET_FIREWALL = "KUBE-FIREWALL";

/** nfacct objects that rules count with; the backend's user makes them (`IptablesOptions.counters`). */
export const INVALID_DROPPED_COUNTER = "ct_state_invalid_dropped_pkts";
/** Counts packets to node ports on 127.0.0.1 that route_localnet lets in. */
export const LOCALHOST_ACCEPTED_COUNTER = "localhost_nps_accepted_pkts";
/** All nfacct objects that rules of this mode may count with. */
export const COUNTERS: readonly string[] = [INVALID_DROPPED_COUNTER, LOCALHOST_ACCEPTED_COUNTER];

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

/**
 * Endpoints of a set up to which its chain has a rule for each of them, as kube-proxy's. Such a chain is written as a
 * whole whenever one of them comes or goes, and iptables-restore on the nft variant is quadratic in the jumps of one
 * transaction: 5,000 take a second, 100,000 minutes.
 */
const FLAT = 5_000;

/** Beyond it there are 1,024 pages, else 32, so that a page and the chain before it have about as many rules. */
const FEW_PAGES = 32_768;

/**
 * Sorts a large set's endpoints into pages, one at a time, as there may be a hundred thousand. An endpoint's page
 * follows from the hash in its own chain's name, so that an endpoint that comes or goes changes one page only.
 */
class Pager {
  readonly #endpoints: readonly PlanEndpoint[];
  readonly #chainOf: (endpoint: PlanEndpoint) => string;
  readonly #pages = new Map<string, PlanEndpoint[]>();
  readonly #digits: number;
  #sorted = 0;

  /** @param chainOf the name of an endpoint's chain */
  constructor(endpoints: readonly PlanEndpoint[], chainOf: (endpoint: PlanEndpoint) => string) {
    this.#endpoints = endpoints;
    this.#chainOf = chainOf;
    this.#digits = endpoints.length > FEW_PAGES ? 2 : 1;
  }

  /** Sorts one more endpoint in. */
  step(): void {
    const endpoint = this.#endpoints[this.#sorted];
    if (endpoint === undefined || this.#endpoints.length <= FLAT) return;
    this.#sorted++;
    const page = this.#chainOf(endpoint).slice(HASH_AT, HASH_AT + this.#digits);
    const known = this.#pages.get(page);
    if (known === undefined) this.#pages.set(page, [endpoint]);
    else known.push(endpoint);
  }

  /**
   * The pages, with what was not sorted in yet.
   *
   * @param chain the set's
   * @returns none for a set that fits into one chain
   */
  pages(chain: string): readonly Page[] {
    if (this.#endpoints.length <= FLAT) return [];
    while (this.#sorted < this.#endpoints.length) this.step();
    const pages = [...this.#pages].sort(([a], [b]) => (a < b ? -1 : 1));
    return pages.map(([page, endpoints]) => ({ endpoints, chain: `${chain}-${page}`, knownChain: `${chain}.${page}` }));
  }
}

const HASH_AT = "KUBE-SEP-".length;
