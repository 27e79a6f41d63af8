/** Makes HCN's objects equal to what the plan needs, one by one: HCN has no transaction over them. */

import { errorText } from "@fairlead/base";
import { canonicalId, type Endpoints } from "./endpoints.ts";
import type { Ledger, Touched } from "./ledger.ts";
import type { HnsFeatures, PlanContext } from "./plan/context.ts";
import { endpointSettings, frontendKey, isRemote, type WantedBalancer } from "./plan/objects.ts";
import type { Balancer, BalancerSettings, EndpointSettings, HcnPort } from "./port.ts";

/** What is known of HCN: its objects as far as they are ours, and what it refused. */
export interface Programmed {
  readonly network: string;
  readonly context: PlanContext;
  readonly ledger: Ledger;
  readonly endpoints: Endpoints;
  readonly balancers: Map<string, Balancer>;
  /** What HCN refused, by load balancer or endpoint, in words. */
  readonly refused: Map<string, string>;
  /** Addresses of pods of this node that HCN has no endpoint for. */
  readonly missing: Set<string>;
}

export interface Written {
  loadBalancers: number;
  remoteEndpoints: number;
}

/** HRESULTs (winerror.h). */
const NOT_IMPLEMENTED = 0x80004001;
const TAKEN: readonly number[] = [0x803b0013, 0x800700b7];
/** HNS does not run, or its network is gone: nothing else can be written either. */
const FATAL: readonly number[] = [0x800706b5, 0x803b0001];

/**
 * Brings what a change touched to what the ledger says. New endpoints come before the load balancers that lead to them,
 * and endpoints go after them; last those whose address another one has (`spare`, by id). What HCN refuses costs what
 * it is for, and is tried again by the next full sync.
 *
 * @param features a method that turns out to be missing is noted in it
 * @throws Error when HNS is not running or the network is gone
 */
export async function settle(
  port: HcnPort,
  programmed: Programmed,
  { keys, addresses, spare = [] }: Touched & { readonly spare?: readonly string[] },
  features: { -readonly [Name in keyof HnsFeatures]: HnsFeatures[Name] },
): Promise<Written> {
  const written: Written = { loadBalancers: 0, remoteEndpoints: 0 };
  const worker = new Worker(port, programmed, written, features);
  for (const address of new Set(addresses)) await worker.makeEndpoint(address);
  const touched = new Set(keys);
  for (const key of touched) await worker.writeBalancer(key);
  for (const key of touched) await worker.deleteBalancer(key);
  for (const address of new Set(addresses)) await worker.deleteEndpoint(address);
  for (const id of spare) await worker.deleteSpare(id);
  return written;
}

/** Whether HCN's load balancer is what is wanted: order and case of ids aside, and zeros that HCN may leave out. */
export function isEqual(found: BalancerSettings, wanted: BalancerSettings): boolean {
  const ids = ({ HostComputeEndpoints = [] }: BalancerSettings) => HostComputeEndpoints.map(canonicalId).sort().join();
  return formOf(found) === formOf(wanted) && ids(found) === ids(wanted);
}

/** All of a load balancer but its endpoints and their port, which HcnModifyLoadBalancer can change. */
function kindOf({ SourceVIP = "", Flags = 0, PortMappings = [] }: BalancerSettings): string {
  const mappings = PortMappings.map(({ DistributionType = 0, Flags: own = 0 }) => [DistributionType, own]);
  return JSON.stringify([SourceVIP, Flags, mappings]);
}

function formOf(settings: BalancerSettings): string {
  const ports = (settings.PortMappings ?? []).map(({ InternalPort }) => InternalPort);
  return [frontendKey(settings), kindOf(settings), ports.join()].join(" ");
}

class Worker {
  readonly #port: HcnPort;
  readonly #now: Programmed;
  readonly #written: Written;
  readonly #features: { modify: boolean };

  constructor(port: HcnPort, programmed: Programmed, written: Written, features: { modify: boolean }) {
    this.#port = port;
    this.#now = programmed;
    this.#written = written;
    this.#features = features;
  }

  async makeEndpoint(address: string): Promise<void> {
    const { ledger, endpoints, network } = this.#now;
    const wanted = ledger.endpoint(address);
    if (wanted === undefined || endpoints.idOf({ address, local: false }) !== undefined) return;
    await this.#attempt(`endpoint ${address}`, async () => {
      endpoints.add(await create(this.#port, endpointSettings(wanted, network)));
      this.#written.remoteEndpoints += 1;
    });
  }

  async deleteEndpoint(address: string): Promise<void> {
    const { ledger, endpoints } = this.#now;
    const found = endpoints.remote(address);
    if (found === undefined || ledger.endpoint(address) !== undefined || !isRemote(found)) return;
    await this.#attempt(`endpoint ${address}`, async () => {
      await this.#port.deleteEndpoint(found.ID);
      endpoints.delete(found.ID);
    });
  }

  async deleteSpare(id: string): Promise<void> {
    const { balancers, endpoints } = this.#now;
    const ids = [...balancers.values()].flatMap(({ HostComputeEndpoints = [] }) => HostComputeEndpoints);
    if (ids.some((one) => canonicalId(one) === id)) return;
    await this.#attempt(`endpoint ${id}`, async () => {
      await this.#port.deleteEndpoint(id);
      endpoints.delete(id);
    });
  }

  async writeBalancer(key: string): Promise<void> {
    const { ledger, balancers } = this.#now;
    const wanted = ledger.balancer(key);
    const settings = wanted && this.#settings(wanted);
    if (wanted === undefined || settings === undefined) return;
    const found = balancers.get(key);
    if (found !== undefined && isEqual(found, settings)) return;
    await this.#attempt(subject(wanted), async () => {
      const id = await this.#replace(found, settings);
      balancers.set(key, { ...settings, ID: id });
      this.#written.loadBalancers += 1;
    });
  }

  /** Those that are wanted no more, or have no endpoint left. */
  async deleteBalancer(key: string): Promise<void> {
    const { ledger, balancers } = this.#now;
    const found = balancers.get(key);
    const wanted = ledger.balancer(key);
    if (found === undefined || (wanted && this.#settings(wanted)) !== undefined) return;
    await this.#attempt(`load balancer ${key}`, () => this.#delete(key, found.ID));
  }

  /** @returns undefined: HCN has none of its endpoints */
  #settings({ settings, endpoints, endpointId }: WantedBalancer): BalancerSettings | undefined {
    const ids = endpointId === undefined ? endpoints.flatMap((one) => this.#idOf(one)) : [endpointId];
    return ids.length === 0 ? undefined : { HostComputeEndpoints: ids, ...settings };
  }

  #idOf(endpoint: WantedBalancer["endpoints"][number]): readonly string[] {
    const { endpoints, missing } = this.#now;
    const id = endpoints.idOf(endpoint);
    if (id !== undefined) {
      missing.delete(endpoint.address);
      return [id];
    }
    if (endpoint.local) missing.add(endpoint.address);
    return [];
  }

  /** @returns the id of the load balancer that there is now */
  async #replace(found: Balancer | undefined, settings: BalancerSettings): Promise<string> {
    if (found === undefined) return this.#create(settings);
    if (this.#features.modify && kindOf(found) === kindOf(settings) && (await this.#modify(found.ID, settings))) {
      return found.ID;
    }
    await this.#delete(frontendKey(settings), found.ID);
    return this.#create(settings);
  }

  /** @returns false: this version of Windows cannot do it */
  async #modify(id: string, settings: BalancerSettings): Promise<boolean> {
    try {
      await this.#port.modifyLoadBalancer(id, settings);
      return true;
    } catch (error) {
      if (codeOf(error) !== NOT_IMPLEMENTED) throw error;
      this.#features.modify = false;
      return false;
    }
  }

  /** Where another load balancer has the frontend of a service of ours, it goes first. */
  async #create(settings: BalancerSettings): Promise<string> {
    try {
      return canonicalId(await this.#port.createLoadBalancer(settings));
    } catch (error) {
      if (!TAKEN.includes(codeOf(error))) throw error;
      const other = await this.#atFrontend(settings);
      if (other === undefined) throw error;
      await this.#port.deleteLoadBalancer(other);
      return canonicalId(await this.#port.createLoadBalancer(settings));
    }
  }

  async #atFrontend(settings: BalancerSettings): Promise<string | undefined> {
    const key = frontendKey(settings);
    for (const id of await this.#port.loadBalancerIds()) {
      const found = await this.#port.loadBalancer(id);
      if (found !== undefined && frontendKey(found) === key) return id;
    }
    return undefined;
  }

  /** Windows Server 2019 may refuse once what it does the second time (upstream: deleteLoadBalancer). */
  async #delete(key: string, id: string): Promise<void> {
    await this.#port.deleteLoadBalancer(id).catch((error: unknown) => {
      if (FATAL.includes(codeOf(error))) throw error;
      return this.#port.deleteLoadBalancer(id);
    });
    this.#now.balancers.delete(key);
  }

  async #attempt(what: string, work: () => Promise<void>): Promise<void> {
    const { refused } = this.#now;
    try {
      await work();
      refused.delete(what);
    } catch (error) {
      if (FATAL.includes(codeOf(error))) throw error;
      refused.set(what, `${what}: ${errorText(error)}`);
    }
  }
}

/** Makes an endpoint, and gives it as HCN has it. */
export async function create(port: HcnPort, settings: EndpointSettings) {
  return { ...settings, ID: canonicalId(await port.createEndpoint(settings)) };
}

function subject({ name, key }: WantedBalancer): string {
  return `load balancer ${key} of ${name}`;
}

function codeOf(error: unknown): number {
  const { code } = (typeof error === "object" && error !== null ? error : {}) as { readonly code?: unknown };
  return typeof code === "number" ? code : 0;
}
