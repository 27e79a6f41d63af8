/**
 * HCN in memory: networks, endpoints and load balancers as JSON, and each call as kube-proxy's recordings have it. It
 * refuses what HNS refuses of a service proxy: a frontend that another balancer has, and endpoints that are not there.
 */

import { fieldsOf } from "@fairlead/base";
import {
  HCN_CODES,
  type HcnCreated,
  type HcnEndpoint,
  type HcnEndpointSettings,
  HcnError,
  type HcnHandle,
  type HcnKind,
  type HcnLibrary,
  type HcnLoadBalancer,
  type HcnLoadBalancerSettings,
  type HcnNetwork,
  type HnsVersion,
} from "../hcn/hcn.ts";

/** One call of a function. */
export interface HcnCall {
  /** The function: `HcnCreateLoadBalancer`. */
  readonly call: string;
  /** The object that it is about. */
  readonly id?: string;
  /** What is to be made of it. */
  readonly settings?: unknown;
  /** The HRESULT of a refusal. */
  readonly code?: number;
}

/** What there is at the start. */
export interface FakeHcnOptions {
  /** Default 15.5, which can modify load balancers. */
  readonly version?: HnsVersion;
  /** Default: none. */
  readonly networks?: readonly HcnNetwork[];
  /** Default: none. */
  readonly endpoints?: readonly HcnEndpoint[];
  /** Default: none. */
  readonly loadBalancers?: readonly HcnLoadBalancer[];
}

interface Objects {
  readonly Network: Map<string, HcnNetwork>;
  readonly Endpoint: Map<string, HcnEndpoint>;
  readonly LoadBalancer: Map<string, HcnLoadBalancer>;
}

/** The functions of computenetwork.dll on objects in memory; `createHcn` makes a client of them. */
export class FakeHcn implements HcnLibrary {
  /** Tests may change it, as an update of Windows does. */
  version: HnsVersion;
  /** Tests may change them, as other programs do. */
  readonly objects: Objects;
  readonly #calls: HcnCall[] = [];
  readonly #fails: { readonly call: string; readonly code: number; times: number }[] = [];
  #next = 0;

  constructor({ version, networks = [], endpoints = [], loadBalancers = [] }: FakeHcnOptions = {}) {
    this.version = version ?? { Major: 15, Minor: 5 };
    this.objects = { Network: byId(networks), Endpoint: byId(endpoints), LoadBalancer: byId(loadBalancers) };
  }

  /** All calls so far. */
  get calls(): readonly HcnCall[] {
    return this.#calls;
  }

  /** The calls that changed something, or tried to. */
  get writes(): readonly HcnCall[] {
    return this.#calls.filter(({ call }) => WRITES.test(call));
  }

  /** The next `times` calls of a function are refused. */
  fail(call: string, code: number, times = 1): void {
    this.#fails.push({ call, code, times });
  }

  /** Refuses nothing of what was planned any longer. */
  forgive(): void {
    this.#fails.length = 0;
  }

  async enumerate(kind: HcnKind, query: string): Promise<string> {
    this.#enter({ call: `HcnEnumerate${kind}s` });
    const { Filter = "{}" } = JSON.parse(query) as { readonly Filter?: string };
    const wanted = Object.entries(JSON.parse(Filter) as Readonly<Record<string, string>>);
    const fits = (object: object) =>
      wanted.every(([field, value]) => fieldsOf(object)[FILTERED[field] ?? field] === value);
    return JSON.stringify([...this.objects[kind].values()].filter(fits).map(({ ID }) => ID));
  }

  /** The handle is the id. */
  async open(kind: HcnKind, id: string): Promise<HcnHandle> {
    const code = this.objects[kind].has(id) ? undefined : GONE[kind];
    this.#enter({ call: `HcnOpen${kind}`, id }, code);
    return id;
  }

  async properties(kind: HcnKind, handle: HcnHandle): Promise<string> {
    const object = this.objects[kind].get(String(handle));
    const code = object === undefined ? HCN_CODES.notFound : undefined;
    this.#enter({ call: `HcnQuery${kind}Properties`, id: String(handle) }, code);
    return JSON.stringify(object);
  }

  /** Counts as a call. */
  async close(kind: HcnKind, handle: HcnHandle): Promise<void> {
    this.#enter({ call: `HcnClose${kind}`, id: String(handle) });
  }

  /** Ids begin with `e0000000` and count from 1. */
  async createEndpoint(network: HcnHandle, settings: string): Promise<HcnCreated> {
    const id = this.#newId("e0000000");
    const fields: HcnEndpointSettings = JSON.parse(settings);
    this.#enter({ call: "HcnCreateEndpoint", id, settings: fields });
    this.objects.Endpoint.set(id, { ...fields, ID: id, HostComputeNetwork: String(network) });
    return { id, handle: id };
  }

  /** Ids begin with `1b000000` and count from 1. @throws HcnError as HNS refuses it */
  async createLoadBalancer(settings: string): Promise<HcnCreated> {
    const id = this.#newId("1b000000");
    const fields: HcnLoadBalancerSettings = JSON.parse(settings);
    this.#enter({ call: "HcnCreateLoadBalancer", id, settings: fields }, this.#whyNot(fields));
    this.objects.LoadBalancer.set(id, { ...fields, ID: id });
    return { id, handle: id };
  }

  /** @throws HcnError before HNS 15.5, and as HNS refuses it */
  async modifyLoadBalancer(handle: HcnHandle, settings: string): Promise<void> {
    const id = String(handle);
    const fields: HcnLoadBalancerSettings = JSON.parse(settings);
    const code = supportsModify(this.version) ? this.#whyNot(fields, id) : HCN_CODES.notImplemented;
    this.#enter({ call: "HcnModifyLoadBalancer", id, settings: fields }, code);
    this.objects.LoadBalancer.set(id, { ...fields, ID: id });
  }

  /** @throws HcnError if it is gone */
  async delete(kind: HcnKind, id: string): Promise<void> {
    const code = this.objects[kind].has(id) ? undefined : GONE[kind];
    this.#enter({ call: `HcnDelete${kind}`, id }, code);
    this.objects[kind].delete(id);
  }

  async hnsCall(method: string, path: string): Promise<string> {
    this.#enter({ call: "HNSCall", id: `${method} ${path}` });
    return JSON.stringify({ Success: true, Output: path === "/globals/version" ? this.version : [] });
  }

  #newId(head: string): string {
    this.#next += 1;
    return `${head}-0000-4000-8000-${this.#next.toString(16).padStart(12, "0")}`;
  }

  /** Why HNS refuses a balancer; undefined: it does not. */
  #whyNot(settings: HcnLoadBalancerSettings, id?: string): number | undefined {
    const known = (settings.HostComputeEndpoints ?? []).every((one) => this.objects.Endpoint.has(one));
    if (!known) return HCN_CODES.endpointNotFound;
    const taken = [...this.objects.LoadBalancer.values()].some(
      (other) => other.ID !== id && frontendOf(other) === frontendOf(settings),
    );
    return taken ? HCN_CODES.portExists : undefined;
  }

  #enter(call: HcnCall, own?: number): void {
    const planned = this.#fails.find((fail) => fail.call === call.call && fail.times > 0);
    if (planned !== undefined) planned.times -= 1;
    const code = planned?.code ?? own;
    this.#calls.push(code === undefined ? call : { ...call, code });
    if (code !== undefined) throw new HcnError(call.call, code);
  }
}

const WRITES = /^Hcn(?:Create|Modify|Delete)/;

const FILTERED: Readonly<Record<string, string>> = { VirtualNetwork: "HostComputeNetwork" };

const GONE: Readonly<Record<HcnKind, number>> = {
  Network: HCN_CODES.networkNotFound,
  Endpoint: HCN_CODES.endpointNotFound,
  LoadBalancer: HCN_CODES.notFound,
};

function byId<T extends { readonly ID: string }>(objects: readonly T[]): Map<string, T> {
  return new Map(objects.map((one) => [one.ID, one]));
}

function supportsModify({ Major, Minor }: HnsVersion): boolean {
  return Major > 15 || (Major === 15 && Minor >= 5);
}

function frontendOf({ FrontendVIPs = [], PortMappings = [], Flags = 0 }: HcnLoadBalancerSettings): string {
  const ports = PortMappings.map(({ Protocol, ExternalPort }) => `${Protocol}/${ExternalPort}`);
  return [FrontendVIPs.join(), ports.join(), Flags & 2].join(" ");
}
