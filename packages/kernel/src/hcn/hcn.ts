/**
 * Windows' Host Compute Network, as far as a service proxy needs it: the objects of one network, each of them read,
 * made and deleted by a few calls to computenetwork.dll. Objects are JSON, and their names here are HCN's own.
 */

export type HcnKind = "Network" | "Endpoint" | "LoadBalancer";

/** An open object. What it is, only the library knows. */
export type HcnHandle = unknown;

/** The functions of computenetwork.dll, and HNSCall of vmcompute.dll. Each method is one call. */
export interface HcnLibrary {
  /** @returns the ids, as JSON */
  enumerate(kind: HcnKind, query: string): Promise<string>;
  /** `HcnOpenNetwork`, `HcnOpenEndpoint` or `HcnOpenLoadBalancer`. */
  open(kind: HcnKind, id: string): Promise<HcnHandle>;
  /** @returns the object, as JSON */
  properties(kind: HcnKind, handle: HcnHandle, query: string): Promise<string>;
  /** Gives the handle back. */
  close(kind: HcnKind, handle: HcnHandle): Promise<void>;
  /** Opens it as well. @param settings `HcnEndpointSettings`, as JSON */
  createEndpoint(network: HcnHandle, settings: string): Promise<HcnCreated>;
  /** Opens it as well. @param settings `HcnLoadBalancerSettings`, as JSON */
  createLoadBalancer(settings: string): Promise<HcnCreated>;
  /** Since HNS 15.5. @param settings all of them, as JSON */
  modifyLoadBalancer(handle: HcnHandle, settings: string): Promise<void>;
  /** Needs no handle. */
  delete(kind: HcnKind, id: string): Promise<void>;
  /** @returns the answer, as JSON */
  hnsCall(method: string, path: string, body: string): Promise<string>;
}

/** A new object: its id, and the object, which is open. */
export interface HcnCreated {
  /** A GUID. */
  readonly id: string;
  /** Open; the caller closes it. */
  readonly handle: HcnHandle;
}

/** The version of HNS, which says what it can do. */
export interface HnsVersion {
  /** 15 of 15.5. */
  readonly Major: number;
  /** 5 of 15.5. */
  readonly Minor: number;
}

/** A rule of a network or an endpoint. */
export interface HcnPolicy {
  /** `RemoteSubnetRoute`, `ProviderAddress`, … */
  readonly Type: string;
  /** The fields that its type has. */
  readonly Settings: Readonly<Record<string, unknown>>;
}

/** The network that a CNI plugin made. */
export interface HcnNetwork {
  /** A GUID. */
  readonly ID: string;
  /** The name that the CNI plugin gave it. */
  readonly Name: string;
  /** `L2Bridge`, `Overlay`, … */
  readonly Type: string;
  /** On an overlay, where the pods of other nodes are. */
  readonly Policies?: readonly HcnPolicy[];
}

/** A pod of this node, or (flag 1) an address elsewhere. */
export interface HcnEndpointSettings {
  /** Id of its network. */
  readonly HostComputeNetwork: string;
  /** One address of each family at most. */
  readonly IpConfigurations?: readonly { readonly IpAddress: string; readonly PrefixLength?: number }[];
  /** `02-11-0a-f4-02-05` */
  readonly MacAddress?: string;
  /** 1: the endpoint is on another node. */
  readonly Flags?: number;
  /** On an overlay, the provider address of its node. */
  readonly Policies?: readonly HcnPolicy[];
}

export interface HcnEndpoint extends HcnEndpointSettings {
  /** A GUID. */
  readonly ID: string;
  /** Absent for those that a service proxy makes. */
  readonly Name?: string;
}

/** A port of a balancer. */
export interface HcnPortMapping {
  /** As IP numbers it: TCP 6, UDP 17, SCTP 132. */
  readonly Protocol: number;
  /** The port of all endpoints. */
  readonly InternalPort: number;
  /** The port that clients use. */
  readonly ExternalPort: number;
  /** 2: a client keeps its endpoint. */
  readonly DistributionType?: number;
  /** `LoadBalancerPortMappingFlags` of hcsshim. */
  readonly Flags?: number;
}

/** A balancer: where it is reached, and the endpoints behind it. */
export interface HcnLoadBalancerSettings {
  /** Ids of the endpoints. */
  readonly HostComputeEndpoints?: readonly string[];
  /** The address that packets leave from, on an overlay. */
  readonly SourceVIP?: string;
  /** None: the node's addresses. */
  readonly FrontendVIPs?: readonly string[];
  /** A service proxy makes balancers of one port. */
  readonly PortMappings?: readonly HcnPortMapping[];
  /** `LoadBalancerFlags` of hcsshim: 1 for direct server return. */
  readonly Flags?: number;
}

export interface HcnLoadBalancer extends HcnLoadBalancerSettings {
  /** A GUID. */
  readonly ID: string;
}

/** What HCN refused. */
export class HcnError extends Error {
  override readonly name = "HcnError";
  /** The function that refused: `HcnCreateLoadBalancer`. */
  readonly call: string;
  /** The HRESULT, without a sign. */
  readonly code: number;

  /** @param detail what HCN says of it, if anything */
  constructor(call: string, code: number, detail = "") {
    const unsigned = code >>> 0;
    const meaning = MEANINGS[unsigned];
    const parts = [`0x${unsigned.toString(16).padStart(8, "0")}`, meaning, detail].filter(Boolean);
    super(`${call}: ${parts.join(": ")}`);
    this.call = call;
    this.code = unsigned;
  }
}

/** HRESULTs that are acted upon (winerror.h). */
export const HCN_CODES = {
  /** There is no such load balancer. */
  notFound: 0x80070490,
  networkNotFound: 0x803b0001,
  endpointNotFound: 0x803b0002,
  /** Another balancer has the frontend. */
  portExists: 0x803b0013,
  alreadyExists: 0x800700b7,
  notImplemented: 0x80004001,
  /** RPC_S_UNKNOWN_IF: the service HNS does not run. */
  notRunning: 0x800706b5,
} as const;

const MEANINGS: Readonly<Record<number, string>> = {
  [HCN_CODES.notFound]: "there is no such object",
  [HCN_CODES.networkNotFound]: "there is no such network",
  [HCN_CODES.endpointNotFound]: "there is no such endpoint",
  [HCN_CODES.portExists]: "another load balancer has this frontend",
  [HCN_CODES.alreadyExists]: "there is such an object",
  [HCN_CODES.notImplemented]: "this version of Windows cannot do it",
  [HCN_CODES.notRunning]: "the Host Network Service (hns) is not running",
};

/** What a service proxy asks of HCN. What is gone when it is to be deleted, is deleted. */
export interface HcnClient {
  /** @throws HcnError where the service does not run */
  version(): Promise<HnsVersion>;
  /** @returns undefined: there is none of this name */
  network(name: string): Promise<HcnNetwork | undefined>;
  /** Those of one network. @param network its id */
  endpointIds(network: string): Promise<readonly string[]>;
  /** @returns undefined: it is gone */
  endpoint(id: string): Promise<HcnEndpoint | undefined>;
  /** @returns undefined: there is none of this name */
  endpointByName(name: string): Promise<HcnEndpoint | undefined>;
  /** Those of all programs. */
  loadBalancerIds(): Promise<readonly string[]>;
  /** @returns undefined: it is gone */
  loadBalancer(id: string): Promise<HcnLoadBalancer | undefined>;
  /** @returns its id */
  createEndpoint(settings: HcnEndpointSettings): Promise<string>;
  /** @throws HcnError where HCN refuses */
  deleteEndpoint(id: string): Promise<void>;
  /** @returns its id */
  createLoadBalancer(settings: HcnLoadBalancerSettings): Promise<string>;
  /** Replaces all settings; since HNS 15.5. */
  modifyLoadBalancer(id: string, settings: HcnLoadBalancerSettings): Promise<void>;
  /** @throws HcnError where HCN refuses */
  deleteLoadBalancer(id: string): Promise<void>;
}

/** A client over the functions of a library. */
export function createHcn(library: HcnLibrary): HcnClient {
  return new Client(library);
}

const SCHEMA = { Major: 2, Minor: 0 } as const;

/** In the schema of HCN's first version that has a field for what it is asked for. */
const QUERY = JSON.stringify({ SchemaVersion: SCHEMA });

class Client implements HcnClient {
  readonly #library: HcnLibrary;

  constructor(library: HcnLibrary) {
    this.#library = library;
  }

  async version(): Promise<HnsVersion> {
    const answer = await this.#library.hnsCall("GET", "/globals/version", "");
    const { Success, Error: reason = "", Output } = parsed("HNSCall", answer);
    if (Success !== true || !isVersion(Output)) throw new Error(`HNSCall: no version of HNS: ${String(reason)}`);
    return Output;
  }

  network(name: string): Promise<HcnNetwork | undefined> {
    return this.#named("Network", name);
  }

  endpointIds(network: string): Promise<readonly string[]> {
    return this.#ids("Endpoint", { VirtualNetwork: network });
  }

  endpoint(id: string): Promise<HcnEndpoint | undefined> {
    return this.#read("Endpoint", id);
  }

  endpointByName(name: string): Promise<HcnEndpoint | undefined> {
    return this.#named("Endpoint", name);
  }

  loadBalancerIds(): Promise<readonly string[]> {
    return this.#ids("LoadBalancer");
  }

  loadBalancer(id: string): Promise<HcnLoadBalancer | undefined> {
    return this.#read("LoadBalancer", id);
  }

  async createEndpoint(settings: HcnEndpointSettings): Promise<string> {
    const network = await this.#library.open("Network", settings.HostComputeNetwork);
    try {
      const text = JSON.stringify({ ...settings, Dns: {}, Health: { Extra: {} }, SchemaVersion: SCHEMA });
      const { id, handle } = await this.#library.createEndpoint(network, text);
      await this.#close("Endpoint", handle);
      return id;
    } finally {
      await this.#close("Network", network);
    }
  }

  deleteEndpoint(id: string): Promise<void> {
    return this.#delete("Endpoint", id);
  }

  async createLoadBalancer(settings: HcnLoadBalancerSettings): Promise<string> {
    const { id, handle } = await this.#library.createLoadBalancer(withSchema(settings));
    await this.#close("LoadBalancer", handle);
    return id;
  }

  async modifyLoadBalancer(id: string, settings: HcnLoadBalancerSettings): Promise<void> {
    const handle = await this.#library.open("LoadBalancer", id);
    try {
      await this.#library.modifyLoadBalancer(handle, withSchema(settings));
    } finally {
      await this.#close("LoadBalancer", handle);
    }
  }

  deleteLoadBalancer(id: string): Promise<void> {
    return this.#delete("LoadBalancer", id);
  }

  /** What was done stays done: the handle costs a little memory of this process. */
  async #close(kind: HcnKind, handle: HcnHandle): Promise<void> {
    await this.#library.close(kind, handle).catch(() => {});
  }

  async #ids(kind: HcnKind, filter?: Readonly<Record<string, string>>): Promise<readonly string[]> {
    const query = filter ? JSON.stringify({ SchemaVersion: SCHEMA, Filter: JSON.stringify(filter) }) : QUERY;
    const ids: unknown = JSON.parse(await this.#library.enumerate(kind, query));
    return Array.isArray(ids) ? ids.filter((id): id is string => typeof id === "string") : [];
  }

  async #named<T extends { readonly Name?: string }>(kind: HcnKind, name: string): Promise<T | undefined> {
    for (const id of await this.#ids(kind, { Name: name })) {
      const found = await this.#read<T>(kind, id);
      if (found?.Name === name) return found;
    }
    return undefined;
  }

  async #read<T>(kind: HcnKind, id: string): Promise<T | undefined> {
    try {
      const handle = await this.#library.open(kind, id);
      try {
        return parsed<T>(`HcnQuery${kind}Properties`, await this.#library.properties(kind, handle, QUERY));
      } finally {
        await this.#close(kind, handle);
      }
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
  }

  async #delete(kind: HcnKind, id: string): Promise<void> {
    try {
      await this.#library.delete(kind, id);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
}

/** Whether an error says that the object is not there. */
export function isGone(error: unknown): boolean {
  return error instanceof HcnError && GONE.includes(error.code);
}

const GONE: readonly number[] = [HCN_CODES.notFound, HCN_CODES.endpointNotFound, HCN_CODES.networkNotFound];

function withSchema(settings: HcnLoadBalancerSettings): string {
  return JSON.stringify({ ...settings, SchemaVersion: SCHEMA });
}

/** What HCN says is taken at its word: the fields that are read of it are looked at where they are used. */
function parsed<T = Readonly<Record<string, unknown>>>(call: string, text: string): T {
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null) throw new Error(`${call}: answered ${text}, which is not an object`);
  return value as T;
}

function isVersion(value: unknown): value is HnsVersion {
  if (typeof value !== "object" || value === null) return false;
  const { Major, Minor } = value as Partial<HnsVersion>;
  return typeof Major === "number" && typeof Minor === "number";
}
