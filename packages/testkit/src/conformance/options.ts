import { BlockList } from "node:net";
import { familyOf } from "@fairlead/base";
import type { IPFamily, LocalTrafficDetector, NodePortAddresses } from "@fairlead/core";
import { NETWORKS, NODE_A, POD_BLOCKS, SECOND_NODE_ADDRESS } from "../addresses.ts";

/** The agent's options that change what becomes of a packet, under the names of its flags. */
export interface AgentOptions {
  readonly clusterCIDRs: readonly string[];
  readonly excludeClusterCIDRs: readonly string[];
  readonly mixedServices: "own-endpoints" | "skip" | "all";
  readonly excludedFrontends: "all" | "cluster-ip" | "excluded-clients";
  /** Default: as `excludedFrontends` has it. */
  readonly masqueradeToExcluded?: boolean;
  readonly ownershipAnnotation: boolean;
  readonly masqueradeAll: boolean;
  readonly localhostNodePorts: boolean;
  /** Default false. */
  readonly resetStaleTCP?: boolean;
  /** CIDRs; empty: each mode's default (all, in nftables primary). */
  readonly nodePortAddresses: readonly string[];
  /** How local pods are recognized; cidrs: by `clusterCIDRs`; node-cidrs: by the node's podCIDRs. */
  readonly detectLocal:
    | { readonly kind: "cidrs" | "node-cidrs" | "none" }
    | { readonly kind: "interface-prefix"; readonly prefix: string };
}

/** The two pod networks of the founding case, in both families. */
export const STANDARD_OPTIONS: AgentOptions = {
  clusterCIDRs: [NETWORKS.calico.IPv4, NETWORKS.calico.IPv6],
  excludeClusterCIDRs: [NETWORKS.ovn.IPv4, NETWORKS.ovn.IPv6],
  mixedServices: "own-endpoints",
  excludedFrontends: "all",
  ownershipAnnotation: true,
  masqueradeAll: false,
  localhostNodePorts: true,
  nodePortAddresses: [],
  detectLocal: { kind: "cidrs" },
};

/** What `detectLocal` comes to in one family, as the planner takes it. */
export function detectorOf(options: AgentOptions, family: IPFamily): LocalTrafficDetector {
  const { detectLocal } = options;
  const inFamily = (cidr: string) => familyOf(cidr) === family;
  if (detectLocal.kind === "interface-prefix") return { kind: "interface-prefix", prefix: detectLocal.prefix };
  if (detectLocal.kind === "none") return { kind: "none" };
  const all = detectLocal.kind === "cidrs" ? options.clusterCIDRs : Object.values(POD_BLOCKS["node-a"].calico);
  return { kind: "cidrs", cidrs: all.filter(inFamily) };
}

/** What `nodePortAddresses` comes to in one family on node-a. */
export function nodePortAddressesOf(options: AgentOptions, family: IPFamily): NodePortAddresses {
  const selected = new BlockList();
  for (const cidr of options.nodePortAddresses) addSubnet(selected, cidr);
  if (options.nodePortAddresses.length === 0) return { kind: "all" };
  const own = [NODE_A.addresses[family], SECOND_NODE_ADDRESS[family]];
  return { kind: "list", addresses: own.filter((address) => selected.check(address, blockFamily(address))).sort() };
}

/** `PlannerOptions.nodePortHosts` of one family on node-a. */
export function nodePortHostsOf(options: AgentOptions, family: IPFamily): readonly string[] {
  const served = nodePortAddressesOf(options, family);
  return served.kind === "list" ? served.addresses : [NODE_A.addresses[family], SECOND_NODE_ADDRESS[family]];
}

function addSubnet(list: BlockList, cidr: string): void {
  const [network = "", length = ""] = cidr.split("/");
  list.addSubnet(network, Number(length), blockFamily(network));
}

function blockFamily(address: string): "ipv4" | "ipv6" {
  return familyOf(address) === "IPv6" ? "ipv6" : "ipv4";
}
