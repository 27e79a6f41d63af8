import { isLoopback } from "@fairlead/base";
import type { ForwardingPlan, IPFamily, LocalTrafficDetector, NodePlan, PlanChange, Protocol } from "@fairlead/core";
import { NFT_FAMILY, type NftFamily } from "@fairlead/netfilter/nft";
import { tableName } from "./names.ts";

/** What a configuration decides. */
export interface ConfiguredOptions {
  /**
   * The services that it is for (serviceProxyName); with a name it has a table of its own alongside another proxy's.
   * Default "".
   */
  readonly serviceProxyName: string;
  /** Bit of the packet mark that asks for masquerading, 0…31 (nftables.masqueradeBit). Default 14. */
  readonly masqueradeBit: number;
  /** What becomes of node ports on loopback addresses, by family. Default "untouched". */
  readonly loopbackNodePorts: Readonly<Record<IPFamily, LoopbackNodePorts>>;
  /** Established connections of services are put into a flowtable (nftables.fastPath). Default false. */
  readonly fastPath: boolean;
}

/** The same for one family. */
export interface PlanSettings extends ConfiguredOptions {
  /** The family whose table is planned. */
  readonly family: IPFamily;
}

/**
 * What becomes of node ports on loopback addresses, where DNAT leads nowhere (KEP-6032). untouched: packets go to
 * whichever program listens there. relayed: TCP, too, since the caller has a relay listen; other protocols are refused.
 * refused: every protocol is. What is refused is counted.
 */
export type LoopbackNodePorts = "untouched" | "refused" | "relayed";

/** As kube-proxy has them. */
export const DEFAULTS = {
  serviceProxyName: "",
  masqueradeBit: 14,
  loopbackNodePorts: { IPv4: "untouched", IPv6: "untouched" },
  fastPath: false,
} as const satisfies ConfiguredOptions;

/** Everything that the table depends on alongside the groups. */
export interface PlanContext {
  readonly family: NftFamily;
  readonly table: string;
  /** Whether its verdicts come before those of the node's first proxy, which refuses what no service of its own is. */
  readonly beside: boolean;
  /** The bit of a packet's mark that asks for masquerading. */
  readonly mark: number;
  /** Traffic to ClusterIPs is masqueraded from every sender. */
  readonly masqueradeAll: boolean;
  readonly detector: LocalTrafficDetector;
  /** Where node ports are served; "all": on every address of the node but loopback. */
  readonly nodePortAddresses: "all" | readonly string[];
  /** The ranges that ClusterIPs are allocated from; none where other proxies may have services there. */
  readonly serviceCIDRs: readonly string[];
  /** ClusterIPs that another network serves. */
  readonly foreignClusterIPs: readonly string[];
  /** Those that it serves there; undefined: all. */
  readonly excludedClients: readonly string[] | undefined;
  /** TCP packets in the middle of a connection to what is refused are answered with a reset. */
  readonly resetStaleTCP: boolean;
  /** The protocols of node ports that are refused on loopback addresses. */
  readonly refusedOnLoopback: readonly Protocol[];
  /** Established connections are put into a flowtable. */
  readonly fastPath: boolean;
}

const REFUSED_ON_LOOPBACK: Readonly<Record<LoopbackNodePorts, readonly Protocol[]>> = {
  untouched: [],
  refused: ["TCP", "UDP", "SCTP"],
  relayed: ["UDP", "SCTP"],
};

export function planContext(
  settings: PlanSettings,
  plan: Pick<ForwardingPlan, "node" | "foreignClusterIPs">,
): PlanContext {
  const { node } = plan;
  const { serviceProxyName } = settings;
  const beside = serviceProxyName !== "";
  return {
    family: NFT_FAMILY[settings.family],
    table: tableName(serviceProxyName),
    beside,
    mark: 2 ** settings.masqueradeBit,
    masqueradeAll: node.masqueradeAll ?? false,
    detector: node.detector,
    nodePortAddresses: nodePortAddresses(node),
    serviceCIDRs: beside ? [] : (node.serviceCIDRs ?? []),
    foreignClusterIPs: [...plan.foreignClusterIPs].sort(),
    excludedClients: node.excludedClients,
    resetStaleTCP: node.resetStaleTCP ?? false,
    refusedOnLoopback: REFUSED_ON_LOOPBACK[settings.loopbackNodePorts[settings.family]],
    fastPath: settings.fastPath,
  };
}

/** Whether a change is of more than groups and health checks. */
export function changesContext({ node, foreignClusterIPs: { added, removed } }: PlanChange): boolean {
  return node !== undefined || added.length > 0 || removed.length > 0;
}

/** Packets to loopback addresses are never translated, as with kube-proxy in this mode. */
function nodePortAddresses({ nodePortAddresses: chosen }: NodePlan): PlanContext["nodePortAddresses"] {
  return chosen.kind === "all" ? "all" : chosen.addresses.filter((address) => !isLoopback(address));
}
