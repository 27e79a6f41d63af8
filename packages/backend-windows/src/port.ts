/** What the backend needs of HCN. `createHcn` of @fairlead/kernel fits it. */

/** A rule of a network or an endpoint. */
export interface Policy {
  /** `RemoteSubnetRoute`, `ProviderAddress`, … */
  readonly Type: string;
  readonly Settings: Readonly<Record<string, unknown>>;
}

export interface Network {
  /** A GUID. */
  readonly ID: string;
  /** As the CNI plugin called it. */
  readonly Name: string;
  /** `L2Bridge`, `Overlay`, … */
  readonly Type: string;
  /** Among them where the pods of other nodes are. */
  readonly Policies?: readonly Policy[];
}

export interface EndpointSettings {
  readonly HostComputeNetwork: string;
  /** Its addresses, one of each family at most. */
  readonly IpConfigurations?: readonly { readonly IpAddress: string; readonly PrefixLength?: number }[];
  /** With dashes or colons. */
  readonly MacAddress?: string;
  /** 1: it is elsewhere. */
  readonly Flags?: number;
  /** On an overlay, where it is. */
  readonly Policies?: readonly Policy[];
}

/** A pod of this node, or an address elsewhere. */
export interface Endpoint extends EndpointSettings {
  /** A GUID. */
  readonly ID: string;
}

export interface PortMapping {
  /** As IP numbers it: TCP 6, UDP 17, SCTP 132. */
  readonly Protocol: number;
  readonly InternalPort: number;
  readonly ExternalPort: number;
  /** 2: a client keeps its endpoint. */
  readonly DistributionType?: number;
  /** `MAPPING_FLAGS` */
  readonly Flags?: number;
}

export interface BalancerSettings {
  readonly HostComputeEndpoints?: readonly string[];
  /** The address that packets leave from, on an overlay. */
  readonly SourceVIP?: string;
  /** Where it is reached; none: at the node's addresses. */
  readonly FrontendVIPs?: readonly string[];
  /** One, of those that this backend makes. */
  readonly PortMappings?: readonly PortMapping[];
  /** `BALANCER_FLAGS` */
  readonly Flags?: number;
}

export interface Balancer extends BalancerSettings {
  /** A GUID. */
  readonly ID: string;
}

/**
 * HCN of this node. Ids of objects that are gone are no error where something is read or deleted. Errors have the
 * HRESULT as their `code`.
 */
export interface HcnPort {
  version(): Promise<{ readonly Major: number; readonly Minor: number }>;
  network(name: string): Promise<Network | undefined>;
  endpointIds(network: string): Promise<readonly string[]>;
  endpoint(id: string): Promise<Endpoint | undefined>;
  endpointByName(name: string): Promise<Endpoint | undefined>;
  loadBalancerIds(): Promise<readonly string[]>;
  loadBalancer(id: string): Promise<Balancer | undefined>;
  /** @returns its id */
  createEndpoint(settings: EndpointSettings): Promise<string>;
  deleteEndpoint(id: string): Promise<void>;
  /** @returns its id */
  createLoadBalancer(settings: BalancerSettings): Promise<string>;
  modifyLoadBalancer(id: string, settings: BalancerSettings): Promise<void>;
  deleteLoadBalancer(id: string): Promise<void>;
}
