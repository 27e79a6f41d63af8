/** What the backend needs of HCN. `createHcn` of @fairlead/kernel fits it. */

/** A rule of a network or an endpoint. */
export interface Policy {
  /** `RemoteSubnetRoute`, `ProviderAddress`, … */
  readonly Type: string;
  /** As its type has them. */
  readonly Settings: Readonly<Record<string, unknown>>;
}

/** The network of the pods. */
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

/** What an endpoint is made of. */
export interface EndpointSettings {
  /** Id of its network. */
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

/** A port of a load balancer. */
export interface PortMapping {
  /** As IP numbers it: TCP 6, UDP 17, SCTP 132. */
  readonly Protocol: number;
  /** The port of all endpoints. */
  readonly InternalPort: number;
  /** The port that clients use. */
  readonly ExternalPort: number;
  /** 2: a client keeps its endpoint. */
  readonly DistributionType?: number;
  /** `MAPPING_FLAGS` */
  readonly Flags?: number;
}

/** What a load balancer is made of. */
export interface BalancerSettings {
  /** Ids of the endpoints behind it. */
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

/** A load balancer. */
export interface Balancer extends BalancerSettings {
  /** A GUID. */
  readonly ID: string;
}

/**
 * HCN of this node. Ids of objects that are gone are no error where something is read or deleted. Errors have the
 * HRESULT as their `code`.
 */
export interface HcnPort {
  /** The version of HNS. */
  version(): Promise<{ readonly Major: number; readonly Minor: number }>;
  /** @returns undefined: there is none of this name */
  network(name: string): Promise<Network | undefined>;
  /** Those of one network. @param network its id */
  endpointIds(network: string): Promise<readonly string[]>;
  /** @returns undefined: it is gone */
  endpoint(id: string): Promise<Endpoint | undefined>;
  /** @returns undefined: there is none of this name */
  endpointByName(name: string): Promise<Endpoint | undefined>;
  /** Those of all programs. */
  loadBalancerIds(): Promise<readonly string[]>;
  /** @returns undefined: it is gone */
  loadBalancer(id: string): Promise<Balancer | undefined>;
  /** @returns its id */
  createEndpoint(settings: EndpointSettings): Promise<string>;
  /** @throws Error where HCN refuses */
  deleteEndpoint(id: string): Promise<void>;
  /** @returns its id */
  createLoadBalancer(settings: BalancerSettings): Promise<string>;
  /** Replaces all settings; since HNS 15.5. */
  modifyLoadBalancer(id: string, settings: BalancerSettings): Promise<void>;
  /** @throws Error where HCN refuses */
  deleteLoadBalancer(id: string): Promise<void>;
}
