/**
 * What this node has to do for its services, with every Kubernetes decision already taken. Backends translate it and
 * need to know nothing of Services, EndpointSlices, topology or policies. Everything in it is immutable.
 */

import type { IPFamily, Protocol, ServiceKey, TrafficPolicy } from "./objects.ts";

/** Where a packet to a frontend comes from. The backends distinguish the classes by the `LocalTrafficDetector`. */
export type SourceClass = "pod" | "node" | "outside";

/** proxy: to an endpoint of `set`. leave: this proxy does nothing, another one owns the frontend. */
export type Verdict = "proxy" | "reject" | "drop" | "leave";

/** A set of a group: endpoints of the whole cluster by topology, or those of this node. */
export type EndpointSetName = "cluster" | "local";

/** What happens to packets of one source class at one frontend. */
export type Treatment =
  | { readonly verdict: "proxy"; readonly set: EndpointSetName; readonly masquerade: boolean }
  | { readonly verdict: Exclude<Verdict, "proxy"> };

/** What kind of address a frontend is. `load-balancer`: from status.loadBalancer. */
export type FrontendKind = "cluster-ip" | "node-port" | "external-ip" | "load-balancer";

/** The sources that a frontend's gate lets in. */
export interface AllowedSources {
  /** Canonical CIDRs from spec.loadBalancerSourceRanges, in the order of the spec. */
  readonly ranges: readonly string[];
  /** The service's own load-balancer addresses, allowed as sources because a range contains this node's address. */
  readonly addresses: readonly string[];
}

/** Which clients a frontend is for: those of the cluster, or those outside as well. */
export type Reach = "internal" | "external";

/**
 * What a frontend is served on: its address, which a node port has where its Service chooses some of the node's, or the
 * node's addresses that `NodePlan.nodePortAddresses` selects.
 */
export type At = "address" | "node-port";

/** An address and port, or a node port, at which a group is served, and what becomes of packets there. */
export interface Frontend {
  /** What it is called. Backends name things after it, and decide by `reach`, `at` and `gate`. */
  readonly kind: FrontendKind;
  /** Which clients it is for. */
  readonly reach: Reach;
  /** What it is served on. */
  readonly at: At;
  /** Canonical; absent at node-port. */
  readonly address?: string;
  /** 1…65535; the node port at node-port. */
  readonly port: number;
  /** The traffic policy that the treatments follow from, for printing. Backends follow the treatments. */
  readonly policy: TrafficPolicy;
  /** What becomes of a packet, by where it comes from. */
  readonly treatments: Readonly<Record<SourceClass, Treatment>>;
  /** Who may use it; absent: every client. */
  readonly gate?: AllowedSources;
  /**
   * Another network serves clients in these CIDRs here, except the node itself: their packets are left, whatever the
   * treatments say. Canonical, disjoint, sorted. Absent: there are none.
   */
  readonly excludedClients?: readonly string[];
  /**
   * (kernelspace) A load balancer sends its clients here, and may probe the node for it. Absent: that is not so, or
   * nothing follows from it in the mode.
   */
  readonly fromLoadBalancer?: FromLoadBalancer;
}

/** What a load balancer in front of an address is given. */
export interface FromLoadBalancer {
  /** Packets keep the address as their destination on their way to an endpoint of this node. */
  readonly preservesDestination: boolean;
  /** It has endpoints, and they are ready: none stands in for them while it terminates. */
  readonly ready: boolean;
}

/** An endpoint as backends need it. */
export interface PlanEndpoint {
  /** Canonical address. */
  readonly address: string;
  /** 1…65535. */
  readonly port: number;
  /** Runs on this node. */
  readonly local: boolean;
}

/** How new connections are divided among the endpoints of a set. */
export interface SetWeights {
  /** Positive whole numbers with a sum of about 65,536 at most, in the order of the set. */
  readonly endpoints: readonly number[];
  /** What of the same is refused; absent: nothing. */
  readonly refused?: number;
}

/** One port of one Service in one IP family. */
export interface ServicePortGroup {
  /** Unique in its family: `${name}/${protocol in lower case}`, opaque, but for printing. */
  readonly id: string;
  /**
   * `namespace/name:port`, without the colon where the port has no name: the text that names and comments are made of.
   */
  readonly name: string;
  /** The service that the group is a port of. */
  readonly service: ServiceKey;
  /** The family of its frontends and endpoints. */
  readonly family: IPFamily;
  /** The protocol of the port. */
  readonly protocol: Protocol;
  /**
   * Sets in the byte order of `address:port`. A set that no frontend uses is empty. Endpoints that stand in more than
   * one of the lists are the same object.
   */
  readonly cluster: readonly PlanEndpoint[];
  /** Endpoints of this node, for the policy Local. */
  readonly local: readonly PlanEndpoint[];
  /** Of the sets that are not empty; absent: the endpoints of a set weigh alike, and all connections get one. */
  readonly weights?: Readonly<Partial<Record<EndpointSetName, SetWeights>>>;
  /** Every endpoint that serves, policies and topology aside: conntrack entries to any other are stale. */
  readonly serving: readonly PlanEndpoint[];
  /**
   * SCTP: every endpoint there is, ready or not. Its associations last as long as the endpoint, as TCP connections do,
   * so only entries to endpoints that are gone are stale. TCP, too, with `PlannerOptions.resetStaleTCP`. Absent: the
   * serving ones, and for other protocols.
   */
  readonly present?: readonly PlanEndpoint[];
  /**
   * Every endpoint on this node, ready or not, used or not. A pod that reaches itself by the service has to be
   * masqueraded in any case, and ipvs knows such packets by a set of these only. Absent: there is none.
   */
  readonly onNode?: readonly PlanEndpoint[];
  /** All endpoints counted, in use or not: upstream's large-cluster threshold counts these. */
  readonly endpointCount: number;
  /** Seconds of ClientIP affinity; absent: none. */
  readonly affinitySeconds?: number;
  /**
   * Clients are to be sent to endpoints by a hash of their address, the same on every node. Absent: in the mode's own
   * way. Affinity, where there is any, comes first.
   */
  readonly balance?: "source-hash";
  /** Its packets are to meet all rules, whichever of them a mode could spare them. Absent: they may bypass rules. */
  readonly fastPath?: "off";
  /** In the order cluster-ip, external-ip, load-balancer, node-port. */
  readonly frontends: readonly Frontend[];
  /** The service's health-check port, which has to be let in. */
  readonly healthCheckPort?: number;
  /** Annotations `fairlead.dev/…` of the service that a backend may read (fairlead.dev/ipvs-scheduler). */
  readonly annotations: Readonly<Record<string, string>>;
}

/** How packets of this node's pods are recognized (KubeProxyConfiguration.detectLocalMode). */
export type LocalTrafficDetector =
  | { readonly kind: "none" }
  | { readonly kind: "cidrs"; readonly cidrs: readonly string[] }
  | { readonly kind: "bridge"; readonly interface: string }
  | { readonly kind: "interface-prefix"; readonly prefix: string };

/** On which of the node's addresses node ports are served. */
export type NodePortAddresses =
  | { readonly kind: "all" }
  /** Canonical addresses, sorted; they change while the node runs. */
  | { readonly kind: "list"; readonly addresses: readonly string[] };

/** A health-check node port with what its server answers (spec.healthCheckNodePort). */
export interface HealthCheck {
  /** The service whose health the port reports. */
  readonly service: ServiceKey;
  /** metadata.namespace of the service. */
  readonly namespace: string;
  /** metadata.name of the service. */
  readonly name: string;
  /** spec.healthCheckNodePort. */
  readonly port: number;
  /** Distinct addresses of ready endpoints on this node. */
  readonly localEndpoints: number;
  /** The node's addresses that its server listens on, canonical; absent: those that node ports are served on. */
  readonly addresses?: readonly string[];
}

/** What the node needs once, alongside the groups. */
export interface NodePlan {
  /** How local pods' packets are recognized. */
  readonly detector: LocalTrafficDetector;
  /** Where node ports are served. */
  readonly nodePortAddresses: NodePortAddresses;
  /**
   * The addresses of the node's own interfaces, canonical, sorted; they change while the node runs. Absent where the
   * mode has no use for them: only ipvs programs addresses, iptables asks the kernel packet by packet.
   */
  readonly nodeAddresses?: readonly string[];
  /**
   * The addresses of the other Nodes, canonical, sorted; they change while the cluster runs. Absent where the mode has
   * no use for them, or they are not known: in ipvs mode an address on the service device is the node's own, with all
   * of its ports.
   */
  readonly otherNodes?: readonly string[];
  /**
   * What ClusterIPs are allocated from: canonical CIDRs of the family by address, none of them within another; they
   * change while the cluster runs. Absent where the mode has no use for them, or they are not known: only nftables mode
   * drops packets to ClusterIPs that no service has.
   */
  readonly serviceCIDRs?: readonly string[];
  /** Every sender is masqueraded on the way to every ClusterIP. Absent: as the treatments of each have it. */
  readonly masqueradeAll?: true;
  /** `Frontend.excludedClients` of the ClusterIPs in `foreignClusterIPs`. Absent: those are left, for every sender. */
  readonly excludedClients?: readonly string[];
  /**
   * What is sent to a refused TCP frontend in the middle of a connection is answered with a reset: the connection was
   * to an endpoint that is gone (`PlannerOptions.resetStaleTCP`). Absent: it is refused as the beginning of one is.
   */
  readonly resetStaleTCP?: true;
}

/**
 * The whole plan of one IP family. The maps are live views of the planner: read them, do not keep them across changes.
 */
export interface ForwardingPlan {
  /** The family of all that is in it. */
  readonly family: IPFamily;
  /** Groups by their id. */
  readonly groups: ReadonlyMap<string, ServicePortGroup>;
  /** What the node needs once. */
  readonly node: NodePlan;
  /** Health checks by service. */
  readonly healthChecks: ReadonlyMap<ServiceKey, HealthCheck>;
  /** ClusterIPs that another network serves, to its own clients at least (nftables lets them pass before its drop). */
  readonly foreignClusterIPs: ReadonlySet<string>;
  /** Sum of `endpointCount` over the groups. */
  readonly endpointCount: number;
}

/** One group before and after a change. */
export interface GroupChange {
  /** Absent: the group is new. */
  readonly before?: ServicePortGroup;
  /** Absent: the group is gone. */
  readonly after?: ServicePortGroup;
}

/** The step from one plan of a family to the next. Groups that stayed equal are not in it. */
export interface PlanChange {
  /** The family of both plans. */
  readonly family: IPFamily;
  /** Changed groups by their id. */
  readonly groups: ReadonlyMap<string, GroupChange>;
  /** Present where `NodePlan` changed. */
  readonly node?: { readonly before: NodePlan; readonly after: NodePlan };
  /** Services whose health check appeared, changed or (undefined) went. */
  readonly healthChecks: ReadonlyMap<ServiceKey, HealthCheck | undefined>;
  /** ClusterIPs that came to `ForwardingPlan.foreignClusterIPs`, and those that went. */
  readonly foreignClusterIPs: { readonly added: readonly string[]; readonly removed: readonly string[] };
}
