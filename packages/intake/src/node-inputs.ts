/**
 * What the planner takes of this node: its addresses, those at which it opens node ports, local traffic, excluded
 * clients.
 */

import {
  addressBytes,
  contains,
  containsCIDR,
  familyOf,
  hostCIDR,
  IP_FAMILIES,
  inAnyOf,
  isLoopback,
  isUnspecified,
  ofFamily,
  prefixLengthOf,
} from "@fairlead/base";
import { type AgentConfig, type DetectLocal, formatError } from "@fairlead/config";
import type {
  EndpointFilter,
  IPFamily,
  LocalTrafficDetector,
  ModeFacts,
  NodePortAddresses,
  NodeState,
  PlannerOptions,
  ServiceCIDR,
} from "@fairlead/core";
import type { ObjectChange, ObjectKey } from "@fairlead/watch";

export interface NodeInputsParts {
  readonly config: AgentConfig;
  readonly nodeName: string;
  readonly families: readonly IPFamily[];
  readonly filter: EndpointFilter;
  /** The mode that is planned for: what it has no use for is left out, so that changes of that do not matter. */
  readonly mode: Pick<ModeFacts, "semantics" | "needs">;
  /** What plans is kube-proxy: `primary` serves every address of a family without Node IP. Default: Fairlead. */
  readonly primaryAsUpstream?: boolean;
}

interface LearnedNetworks {
  readonly filter: EndpointFilter;
  /** All of our own CIDRs, what is configured among them. */
  readonly clusterCIDRs: readonly string[];
}

interface NodeIPSources {
  /** KubeProxyConfiguration.bindAddress. */
  readonly bindAddress: string;
  /** The own Node's addresses in the order of preference; empty where no Node is known. */
  readonly node: readonly string[];
  /** What the kernel would send from: used where there is no Node, as with manifests. */
  readonly kernel: NodeIPs;
}

/** What is known of this node, which changes while the agent runs, as options of the planner. */
export class NodeInputs {
  readonly #parts: NodeInputsParts;
  #node: NodeState | undefined;
  #addresses: readonly string[] = [];
  #kernelIPs: NodeIPs = {};
  #otherNodes: readonly string[] | undefined;
  #serviceCIDRs: readonly string[] | undefined;
  #networks: LearnedNetworks | undefined;
  #options: PlannerOptions | undefined;

  constructor(parts: NodeInputsParts) {
    this.#parts = parts;
  }

  get node(): NodeState | undefined {
    return this.#node;
  }

  /** The node's addresses of both families as they were last set; empty: they are not known yet. */
  get addresses(): readonly string[] {
    return this.#addresses;
  }

  /** As far as it is known now. */
  get primaryFamily(): PrimaryFamily {
    return primaryFamily(this.#ipSources());
  }

  /** Returns whether it matters. A node that vanished keeps its zone and addresses: they were good a moment ago. */
  setNode(node: NodeState): boolean {
    this.#node = node;
    return this.#refresh();
  }

  /**
   * Returns whether it matters: most addresses that come and go are those of pods' interfaces.
   *
   * @param kernelIPs what the kernel would send from, for a node without a Node object
   */
  setAddresses(addresses: readonly string[], kernelIPs: NodeIPs): boolean {
    this.#addresses = addresses;
    this.#kernelIPs = kernelIPs;
    return this.#refresh();
  }

  /**
   * Returns whether it matters.
   *
   * @param addresses of all Nodes but this one, of both families, sorted
   */
  setOtherNodes(addresses: readonly string[]): boolean {
    this.#otherNodes = addresses;
    return this.#refresh();
  }

  /**
   * Returns whether it matters.
   *
   * @param cidrs of all ServiceCIDR objects, of both families
   */
  setServiceCIDRs(cidrs: readonly string[]): boolean {
    this.#serviceCIDRs = cidrs;
    return this.#refresh();
  }

  /** Returns whether it matters. */
  setNetworks(networks: LearnedNetworks): boolean {
    this.#networks = networks;
    return this.#refresh();
  }

  options(): PlannerOptions {
    this.#options ??= this.#derive();
    return this.#options;
  }

  #refresh(): boolean {
    const before = this.#options;
    const after = this.#derive();
    if (before?.filter === after.filter && JSON.stringify(before) === JSON.stringify(after)) return false;
    this.#options = after;
    return true;
  }

  #ipSources(): NodeIPSources {
    const { bindAddress } = this.#parts.config;
    return { bindAddress, node: this.#node?.addresses ?? [], kernel: this.#kernelIPs };
  }

  #derive(): PlannerOptions {
    const { config, nodeName, families, mode, primaryAsUpstream } = this.#parts;
    const { semantics, needs } = mode;
    const node = this.#node;
    const cidrs = needs.serviceCIDRs ? this.#serviceCIDRs : undefined;
    const others = needs.otherNodes ? this.#otherNodes : undefined;
    const ips = nodeIPs(this.#ipSources());
    const each = <T>(make: (family: IPFamily) => T): Partial<Record<IPFamily, T>> =>
      Object.fromEntries(families.map((family) => [family, make(family)]));
    const selectors = semantics.ignoresNodePortAddresses ? ["all"] : config.nodePortAddresses;
    const nodePortAddresses = each((family) =>
      nodePortAddressesFor(family, selectors, ips, this.#addresses, primaryAsUpstream),
    );
    return {
      nodeName,
      ...(node?.zone === undefined ? {} : { zone: node.zone }),
      families,
      nodeIPs: ips,
      ...(node !== undefined && node.addresses.length > 0 && { ownIPs: node.addresses }),
      detectors: each((family) => detectorFor(family, this.#detectLocal(), node?.podCIDRs ?? [])),
      nodePortAddresses,
      ...(this.#addresses.length > 0 && {
        nodePortHosts: each((family) => this.#hosts(family, nodePortAddresses[family])),
      }),
      ...(needs.nodeAddresses && { nodeAddresses: each((family) => addressesOf(family, this.#addresses)) }),
      ...(others && { otherNodes: each((family) => others.filter(ofFamily(family))) }),
      ...(cidrs && { serviceCIDRs: each((family) => outermost(cidrs.filter(ofFamily(family)))) }),
      masqueradeAll: config[config.mode].masqueradeAll,
      externalIPs: config.features.externalIPs,
      nodeHints: config.features.nodeHints,
      ...(config.resetStaleTCP && { resetStaleTCP: true }),
      semantics,
      filter: this.#networks?.filter ?? this.#parts.filter,
    };
  }

  #hosts(family: IPFamily, served: NodePortAddresses = { kind: "all" }): readonly string[] {
    return nodePortHosts(family, served, this.#addresses);
  }

  /** If CIDRs define local traffic, the learned ones are among them. */
  #detectLocal(): DetectLocal {
    const { detectLocal } = this.#parts.config;
    if (this.#networks === undefined || (detectLocal.kind !== "cidrs" && detectLocal.kind !== "none"))
      return detectLocal;
    return { kind: "cidrs", cidrs: this.#networks.clusterCIDRs };
  }
}

export type NodeIPs = Partial<Readonly<Record<IPFamily, string>>>;

/**
 * The node's address of each family: the bind address, else the Node object's first. The kernel's count where no Node
 * is known: a Node with addresses of one family only has no IP in the other one.
 */
export function nodeIPs({ bindAddress, node, kernel }: NodeIPSources): NodeIPs {
  const found: Partial<Record<IPFamily, string>> = {};
  const own = node.length > 0 ? node : Object.values(kernel);
  for (const family of IP_FAMILIES) {
    const bound = !isUnspecified(bindAddress) && familyOf(bindAddress) === family ? bindAddress : undefined;
    const ip = bound ?? own.find((address) => familyOf(address) === family);
    if (ip !== undefined) found[family] = ip;
  }
  return found;
}

/** The family that a node has to be able to serve. */
export interface PrimaryFamily {
  readonly family: IPFamily;
  /** What says so: the bind address, the own Node, or the kernel where no Node is known. */
  readonly source: keyof NodeIPSources;
  /** The address that it is the family of; absent: the node has none. */
  readonly address?: string;
}

/**
 * The family of the bind address; else that of the Node's first address, as upstream (detectNodeIPs). Without both,
 * where upstream takes IPv4, it is the family in which the kernel has an address, IPv4 before IPv6.
 */
export function primaryFamily({ bindAddress, node, kernel }: NodeIPSources): PrimaryFamily {
  const found = (source: keyof NodeIPSources, address: string) => ({ family: familyOf(address), source, address });
  if (!isUnspecified(bindAddress)) return found("bindAddress", bindAddress);
  const [first] = node;
  if (first !== undefined) return found("node", first);
  const own = kernel.IPv4 ?? kernel.IPv6;
  return own === undefined ? { family: "IPv4", source: "kernel" } : found("kernel", own);
}

/** Keywords of KubeProxyConfiguration.nodePortAddresses; each of them speaks of both families. */
export const KEYWORDS: ReadonlySet<string> = new Set(["primary", "localhost", "all"]);

/**
 * On which addresses a family's node ports are served. A family that none of the selectors speaks of is served on all
 * of its addresses, as upstream. Unlike upstream's, `primary` speaks of a family in which the node has no IP, too: it
 * selects nothing there, where upstream serves on every address.
 *
 * @param selectors CIDRs and the words primary, localhost, all (KubeProxyConfiguration.nodePortAddresses)
 * @param live the addresses that the node has now, of both families
 * @param primaryAsUpstream as kube-proxy does it, for the rules of one
 */
export function nodePortAddressesFor(
  family: IPFamily,
  selectors: readonly string[],
  ips: NodeIPs,
  live: readonly string[],
  primaryAsUpstream = false,
): NodePortAddresses {
  const isPrimary = selectors.length === 1 && selectors[0] === "primary";
  // kube-proxy replaces the word by the CIDRs of its Node IPs, before it sorts them by family.
  const given = primaryAsUpstream && isPrimary ? expand("primary", ips) : selectors;
  const cidrs = selectedCIDRs(family, given, ips);
  if (cidrs === undefined) return { kind: "all" };
  const isSelected = inAnyOf(cidrs);
  const addresses = live.filter((address) => familyOf(address) === family && isSelected(address));
  return { kind: "list", addresses: [...new Set(addresses)].sort() };
}

/**
 * Whether an IPv4 loopback address can be among the selected ones, whatever the node's addresses are. `primary` never
 * selects one.
 */
export function selectsIPv4Loopback(selectors: readonly string[]): boolean {
  const cidrs = selectedCIDRs("IPv4", selectors, {});
  if (cidrs === undefined) return true;
  return cidrs.some((cidr) => isLoopback(cidr) || containsCIDR(cidr, "127.0.0.0/8"));
}

/**
 * How one family's traffic of this node's pods is recognized. Without a CIDR of the family: not at all, as upstream.
 */
export function detectorFor(family: IPFamily, detect: DetectLocal, podCIDRs: readonly string[]): LocalTrafficDetector {
  switch (detect.kind) {
    case "none":
      return detect;
    case "cidrs":
      return byCIDRs(detect.cidrs, family);
    case "node-cidr":
      return byCIDRs(podCIDRs, family);
    case "bridge":
    case "interface-prefix":
      return detect;
  }
}

/**
 * Each once, by address, and without those that lie within another: a set of the kernel refuses ranges that overlap,
 * and ServiceCIDRs may.
 *
 * @param cidrs canonical, of one family
 */
export function outermost(cidrs: readonly string[]): readonly string[] {
  const distinct = Array.from(new Set(cidrs), (cidr) => ({
    cidr,
    first: addressBytes(cidr.slice(0, cidr.indexOf("/"))),
    length: prefixLengthOf(cidr),
  }));
  distinct.sort((a, b) => Buffer.compare(a.first, b.first) || a.length - b.length);
  const kept: string[] = [];
  // The widest of those that begin alike comes first, so that only the last one kept can hold the next.
  for (const { cidr } of distinct) {
    const last = kept.at(-1);
    if (last === undefined || !containsCIDR(last, cidr)) kept.push(cidr);
  }
  return kept;
}

/**
 * What all ServiceCIDR objects say together; one CIDR may stand in several of them.
 *
 * @param onCIDRs called once the first list is in, and whenever an object comes, changes or goes after that
 */
export function followServiceCIDRs(onCIDRs: (cidrs: readonly string[]) => void) {
  const objects = new Map<ObjectKey, readonly string[]>();
  let synced = false;
  return (change: ObjectChange<ServiceCIDR>): void => {
    if (change.type === "upsert") objects.set(change.key, change.object.cidrs);
    else if (change.type === "delete") objects.delete(change.key);
    else synced = true;
    if (synced) onCIDRs([...objects.values()].flat());
  };
}

/**
 * Warnings for written excluded CIDRs with an address of this node: the services of pods on the host's network are
 * another network's then, which is most likely a mistake. What is learned never takes a node's address.
 *
 * @param config one that `filterSettings` takes
 * @param addresses the Node's, canonical
 */
export function nodeExclusions({ multiCNI, provenance }: AgentConfig, addresses: readonly string[]): readonly string[] {
  const field = provenance["multiCNI.excludeClusterCIDRs"] ?? "--exclude-cluster-cidr";
  return multiCNI.excludeClusterCIDRs.flatMap((value) => {
    const address = addresses.find((one) => contains(value, one));
    if (address === undefined) return [];
    const message = `contains ${address}, an address of this node: Services of hostNetwork pods are left to another network; exclude its pod CIDRs only`;
    return [formatError({ field, value, message })];
  });
}

function addressesOf(family: IPFamily, addresses: readonly string[]): readonly string[] {
  return [...new Set(addresses.filter(ofFamily(family)))].sort();
}

/**
 * The addresses among which a service may choose for its node ports: never loopback and never link-local IPv6 ones,
 * which most modes do not serve.
 *
 * @param live the addresses that the node has now, of both families
 */
function nodePortHosts(family: IPFamily, served: NodePortAddresses, live: readonly string[]): readonly string[] {
  const addresses = served.kind === "all" ? live.filter(ofFamily(family)) : served.addresses;
  const reachable = addresses.filter((address) => !isLoopback(address) && !contains("fe80::/10", address));
  return [...new Set(reachable)].sort();
}

/** Undefined: every address of the family. */
function selectedCIDRs(family: IPFamily, selectors: readonly string[], ips: NodeIPs): readonly string[] | undefined {
  const spokenOf = selectors.some((selector) => KEYWORDS.has(selector) || familyOf(selector) === family);
  const cidrs = selectors.flatMap((selector) => expand(selector, ips)).filter((cidr) => familyOf(cidr) === family);
  return !spokenOf || cidrs.some((cidr) => cidr.endsWith("/0")) ? undefined : cidrs;
}

function expand(selector: string, ips: NodeIPs): readonly string[] {
  switch (selector) {
    case "all":
      return ["0.0.0.0/0", "::/0"];
    case "localhost":
      return ["127.0.0.0/8", "::1/128"];
    case "primary":
      return Object.values(ips)
        .filter((ip) => !isLoopback(ip))
        .map(hostCIDR);
    default:
      return [selector];
  }
}

function byCIDRs(all: readonly string[], family: IPFamily): LocalTrafficDetector {
  const cidrs = all.filter((cidr) => familyOf(cidr) === family);
  return cidrs.length === 0 ? { kind: "none" } : { kind: "cidrs", cidrs };
}
