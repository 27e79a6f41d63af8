/** What a table is planned from, and the names of all that is in it. */

import { isLoopback } from "@fairlead/base";
import type {
  EndpointSetName,
  ForwardingPlan,
  IPFamily,
  LocalTrafficDetector,
  NodePlan,
  PlanChange,
  PlanEndpoint,
  Protocol,
} from "@fairlead/core";
import { hashedName } from "@fairlead/netfilter";
import { NFT_FAMILY, type NftFamily } from "@fairlead/netfilter/nft";

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
  /** Whether its verdicts come before those of the node's first proxy, which refuses packets to all other services. */
  readonly alongside: boolean;
  /** The bit of a packet's mark that asks for masquerading. */
  readonly mark: number;
  /** Traffic to ClusterIPs is masqueraded from every sender. */
  readonly masqueradeAll: boolean;
  readonly detector: LocalTrafficDetector;
  /** Where node ports are served; "all": on every address of the node but loopback. */
  readonly nodePortAddresses: "all" | readonly string[];
  /** The ranges that ClusterIPs are allocated from; none where other proxies may have services there. */
  readonly serviceCIDRs: readonly string[];
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
  const alongside = serviceProxyName !== "";
  return {
    family: NFT_FAMILY[settings.family],
    table: tableName(serviceProxyName),
    alongside,
    mark: 2 ** settings.masqueradeBit,
    masqueradeAll: node.masqueradeAll ?? false,
    detector: node.detector,
    nodePortAddresses: nodePortAddresses(node),
    serviceCIDRs: alongside ? [] : (node.serviceCIDRs ?? []),
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

/**
 * The table of either family: kube-proxy's, or a table alongside it for the services of one service proxy name.
 *
 * @param serviceProxyName empty: the services without that label
 */
export function tableName(serviceProxyName: string): string {
  return serviceProxyName === "" ? "kube-proxy" : `fairlead-${serviceProxyName}`;
}

/** The service proxy name of which a table is; undefined: it is none of an agent with a name. */
export function instanceOfTable(name: string): string | undefined {
  return /^fairlead-(.+)$/.exec(name)?.[1];
}

/** Where packets are dropped, but for those in the middle of a TCP connection. */
export const RESET_OR_DROP = "reset-or-drop-chain";

/**
 * The chain of a service port's source ranges, named as kube-proxy names it: the slash is how kube-proxy recognizes a
 * chain that belongs to a service, so that it can remove it. What names cannot have becomes `_`; the hash keeps them
 * apart.
 *
 * @param name `namespace/name:port`, without the colon where the port has no name
 */
export function firewallChain(name: string, protocol: string): string {
  return `firewall-${hashedAndCut(pathOf(name, protocol))}`;
}

/** That of the source ranges of its node port, which kube-proxy has not. */
export function nodePortFirewallChain(name: string, protocol: string): string {
  return `firewall-nodeports-${hashedAndCut(pathOf(name, protocol))}`;
}

/**
 * The chain and the map of a set whose endpoints differ in weight. What is behind the last slash distinguishes it from
 * chains of classes, whatever the port is called.
 */
export function weightedName(name: string, protocol: string, set: EndpointSetName): string {
  return `weighted-${hashedAndCut(pathOf(name, protocol)).slice(0, LONGEST_WEIGHTED)}/${set}`;
}

/** Where kube-proxy remembers the clients of an endpoint of a service port: their addresses. */
export function kubeProxyAffinitySet(name: string, protocol: string, { address, port }: PlanEndpoint): string {
  return `affinity-${hashedAndCut(`${pathOf(name, protocol)}__${address.replaceAll(":", ".")}/${port}`)}`;
}

/** kube-proxy's: where a protocol's node ports on loopback addresses are counted and refused. */
export function loopbackRefusalChain(protocol: Protocol): string {
  return `localhost-nodeport-reject-${protocol.toLowerCase()}`;
}

/** kube-proxy's map that leads there. */
export const LOOPBACK_REFUSALS = "localhost-nodeport-reject-ports";

/** Bytes, NFTNL_UDATA_COMMENT_MAXLEN: the zero byte behind it does not count. */
const LONGEST_COMMENT = 128;

/** A comment that `nft` prints and reads again: nothing ends its quotes or its line, and it is as long as it may be. */
export function commentText(text: string): string {
  return text.replace(/[^\x20-\x7e]|["\\]/g, "_").slice(0, LONGEST_COMMENT);
}

/** Packets to loopback addresses are never translated, as with kube-proxy in this mode. */
function nodePortAddresses({ nodePortAddresses: chosen }: NodePlan): PlanContext["nodePortAddresses"] {
  return chosen.kind === "all" ? "all" : chosen.addresses.filter((address) => !isLoopback(address));
}

/** The same, with room for what clients with affinity are led by, before and behind it. */
const LONGEST_WEIGHTED = 170;

/** NFT_NAME_MAXLEN without its zero byte, and kube-proxy's room for a prefix. */
const LONGEST_BASE = 240;

/** kube-proxy's `namespace/name/protocol/port`. */
function pathOf(name: string, protocol: string): string {
  const colon = `${name}:`.indexOf(":");
  return `${name.slice(0, colon)}/${protocol.toLowerCase()}/${name.slice(colon + 1)}`;
}

/** kube-proxy's hashAndTruncate. */
function hashedAndCut(text: string): string {
  const base = `${hashedName("", text).slice(0, 8)}-${text}`.replace(/[^\w./-]/g, "_");
  return base.length > LONGEST_BASE ? `${base.slice(0, LONGEST_BASE - 3)}...` : base;
}

/** ClusterIPs of other networks: not kube-proxy's, and there only while there is such an address. */
export const FOREIGN = "foreign-cluster-ips";

/** Clients that another network serves itself at those; there only while both are. */
export const EXCLUDED = "excluded-clients";

export type Clients = Pick<PlanContext, "foreignClusterIPs" | "excludedClients">;

/** Whether clients are distinguished at the ClusterIPs of other networks. */
export function distinguishesClients({ foreignClusterIPs, excludedClients = [] }: Clients): boolean {
  return foreignClusterIPs.length > 0 && excludedClients.length > 0;
}
