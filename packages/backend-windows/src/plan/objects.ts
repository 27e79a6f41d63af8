/** The load balancers and endpoints of a group: what upstream's syncProxyRules makes of a service port. */

import { addressBytes } from "@fairlead/base";
import type { Frontend, PlanEndpoint, Protocol, ServicePortGroup } from "@fairlead/core";
import { type PlanContext, providerOf } from "./context.ts";

/** LoadBalancerFlags of HCN. */
const BALANCER_FLAGS = { directServerReturn: 1, ipv6: 2 } as const;

/**
 * LoadBalancerPortMappingFlags of HCN. hnslib has no name for 16: Windows keeps such a port from programs of the node,
 * and admits clients from outside.
 */
export const MAPPING_FLAGS = { localRoutedVip: 2, useMux: 4, preserveDestination: 8, externalPort: 16 } as const;

/** A client keeps its endpoint, for how long is Windows' own decision. */
const BY_CLIENT = 2;

const REMOTE = 1;

const PROTOCOLS = { TCP: 6, UDP: 17, SCTP: 132 } as const satisfies Readonly<Record<Protocol, number>>;

export interface WantedBalancer {
  /** What only one load balancer can have: `frontendKey`. */
  readonly key: string;
  /** Whose it is, for words about it. */
  readonly name: string;
  /** What it is made of, but for its endpoints. */
  readonly settings: BalancerFacts;
  /** The addresses behind it, and the ports that they are said to have. */
  readonly endpoints: readonly PlanEndpoint[];
  /** The id of the one endpoint behind it, where that is no address of the plan. */
  readonly endpointId?: string;
}

/** What of a load balancer can be said without HCN. */
interface BalancerFacts {
  readonly SourceVIP?: string;
  readonly FrontendVIPs?: readonly string[];
  readonly PortMappings: readonly [MappingFacts];
  readonly Flags?: number;
}

interface MappingFacts {
  readonly Protocol: number;
  readonly InternalPort: number;
  readonly ExternalPort: number;
  readonly DistributionType?: number;
  readonly Flags?: number;
}

/** An endpoint that HCN does not have by itself. */
export interface WantedEndpoint {
  readonly address: string;
  readonly mac: string;
  /** On an overlay, the node that it is on. */
  readonly provider?: string;
}

export interface GroupObjects {
  readonly balancers: readonly WantedBalancer[];
  /** On an overlay, the ClusterIP as an endpoint of this node. */
  readonly virtual?: WantedEndpoint;
  /** Endpoints of one group have different ports, and HNS one for all of them: these, and the one that it uses. */
  readonly ports?: { readonly used: number; readonly others: readonly number[] };
}

export function groupObjects(group: ServicePortGroup, context: PlanContext): GroupObjects {
  const balancers = group.frontends.flatMap((frontend) => frontendBalancers(frontend, group, context));
  const address = group.frontends.find(({ reach }) => reach === "internal")?.address;
  const { overlay } = context;
  const used = balancers.at(0)?.settings.PortMappings[0].InternalPort;
  const others = [...new Set(group.cluster.map(({ port }) => port))].filter((port) => port !== used);
  return {
    balancers,
    ...(overlay && address !== undefined && isOurs(group) && { virtual: virtualEndpoint(address, overlay) }),
    ...(used !== undefined && others.length > 0 && { ports: { used, others } }),
  };
}

/** An endpoint elsewhere (upstream: conjureMac, createEndpoint). */
export function remoteEndpoint(address: string, { overlay }: Pick<PlanContext, "overlay">): WantedEndpoint {
  const provider = overlay && (providerOf(address, overlay.subnets) ?? overlay.address);
  return { address, mac: macOf(address), ...(provider !== undefined && { provider }) };
}

/** The MAC address that stands for an address elsewhere: it is on no wire, and says that a service proxy made it. */
export function macOf(address: string): string {
  const bytes = [...addressBytes(address)];
  const used = bytes.length === 4 ? bytes : bytes.slice(-4).reverse();
  return ["02", "11", ...used.map((byte) => byte.toString(16).padStart(2, "0"))].join("-");
}

export function endpointSettings({ address, mac, provider }: WantedEndpoint, network: string) {
  return {
    HostComputeNetwork: network,
    IpConfigurations: [{ IpAddress: address }],
    MacAddress: mac,
    Flags: REMOTE,
    ...(provider !== undefined && {
      Policies: [{ Type: "ProviderAddress", Settings: { ProviderAddress: provider } }],
    }),
  };
}

/** Whether an endpoint is no pod of this node. */
export function isRemote({ Flags = 0 }: { readonly Flags?: number }): boolean {
  return (Flags & REMOTE) !== 0;
}

/**
 * What distinguishes a load balancer from all others, of whatever program: its address or the node's ports, protocol,
 * port and family.
 */
export function frontendKey(settings: {
  readonly FrontendVIPs?: readonly string[];
  readonly PortMappings?: readonly { readonly Protocol: number; readonly ExternalPort: number }[];
  readonly Flags?: number;
}): string {
  const { FrontendVIPs = [], PortMappings = [], Flags = 0 } = settings;
  const ports = PortMappings.map(({ Protocol, ExternalPort }) => `${Protocol}/${ExternalPort}`);
  return [FrontendVIPs.join() || "*", ports.join(), (Flags & BALANCER_FLAGS.ipv6) === 0 ? "IPv4" : "IPv6"].join(" ");
}

/** A foreign service has no endpoint for its ClusterIP: its own network serves it. */
function isOurs({ frontends }: ServicePortGroup): boolean {
  return frontends.some(({ reach, treatments }) => reach === "internal" && treatments.outside.verdict !== "leave");
}

function virtualEndpoint(address: string, node: { readonly address: string; readonly mac: string }): WantedEndpoint {
  return { address, mac: node.mac, provider: node.address };
}

function frontendBalancers(
  frontend: Frontend,
  group: ServicePortGroup,
  context: PlanContext,
): readonly WantedBalancer[] {
  const { outside } = frontend.treatments;
  if (outside.verdict !== "proxy") return [];
  const endpoints = group[outside.set];
  if (endpoints.length === 0) return [];
  const own = ownBalancer(frontend, outside.masquerade, endpoints, group, context);
  return [own, ...healthBalancer(frontend, group, own, context)];
}

function ownBalancer(
  { reach, at, address, port, fromLoadBalancer }: Frontend,
  masquerade: boolean,
  endpoints: readonly PlanEndpoint[],
  group: ServicePortGroup,
  context: PlanContext,
): WantedBalancer {
  const direct = reach === "internal" ? context.dsr : !masquerade && context.dsrSupported;
  const external = reach === "internal" ? 0 : MAPPING_FLAGS.externalPort;
  // Where a Service chooses among the node's addresses, a port at one of them is still a node port.
  const routed = at === "node-port" ? MAPPING_FLAGS.localRoutedVip : 0;
  const preserved = preservingFlags(fromLoadBalancer?.preservesDestination === true && context.dsrSupported);
  const mapping = {
    Protocol: PROTOCOLS[group.protocol],
    InternalPort: endpoints.at(-1)?.port ?? 0,
    ExternalPort: port,
    ...(group.affinitySeconds !== undefined && { DistributionType: BY_CLIENT }),
    ...flags(external | routed | preserved),
  };
  const settings = {
    ...sourceOf(group, context),
    ...(address !== undefined && { FrontendVIPs: [address] }),
    PortMappings: [mapping],
    ...flags((direct ? BALANCER_FLAGS.directServerReturn : 0) | familyFlag(context)),
  } as const satisfies BalancerFacts;
  return { key: frontendKey(settings), name: group.name, settings, endpoints };
}

/** A load balancer's probe of its address is led to the node (forwardHealthCheckVip). */
function healthBalancer(
  { address, fromLoadBalancer }: Frontend,
  { healthCheckPort, name }: ServicePortGroup,
  { settings: { SourceVIP, PortMappings } }: WantedBalancer,
  context: PlanContext,
): readonly WantedBalancer[] {
  const { health } = context;
  const port = healthCheckPort ?? health?.healthzPort;
  if (health === undefined || port === undefined || address === undefined || !fromLoadBalancer?.ready) return [];
  const preserved = preservingFlags(fromLoadBalancer.preservesDestination && context.dsrSupported);
  const [{ Protocol }] = PortMappings;
  const settings = {
    ...(SourceVIP !== undefined && { SourceVIP }),
    FrontendVIPs: [address],
    PortMappings: [{ Protocol, InternalPort: port, ExternalPort: port, ...flags(preserved) }],
    ...flags(familyFlag(context)),
  } as const satisfies BalancerFacts;
  return [{ key: frontendKey(settings), name, settings, endpoints: [], endpointId: health.endpoint }];
}

function preservingFlags(preserves: boolean): number {
  return preserves ? MAPPING_FLAGS.useMux | MAPPING_FLAGS.preserveDestination : 0;
}

function familyFlag({ family }: PlanContext): number {
  return family === "IPv6" ? BALANCER_FLAGS.ipv6 : 0;
}

/** HCN has no field for none. */
function flags(Flags: number): { readonly Flags?: number } {
  return Flags === 0 ? {} : { Flags };
}

/** Packets to a node or out of the cluster leave an overlay from the node's own address. */
function sourceOf({ cluster }: ServicePortGroup, { overlay }: PlanContext): { readonly SourceVIP?: string } {
  if (overlay === undefined) return {};
  const leaves = cluster.some(({ address, local }) => {
    if (local) return false;
    const provider = providerOf(address, overlay.subnets);
    return provider === undefined || provider === address;
  });
  return { SourceVIP: leaves ? overlay.address : overlay.sourceVip };
}
