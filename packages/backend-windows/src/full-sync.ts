/** A full sync: what HCN has, which of it is ours, and what of it the plan does not need. */

import { inAnyOf, inSlices } from "@fairlead/base";
import type { ForwardingPlan, ServicePortGroup } from "@fairlead/core";
import { canonicalId, Endpoints } from "./endpoints.ts";
import { Ledger, type Touched } from "./ledger.ts";
import type { ResolvedOptions } from "./options.ts";
import { type HnsFeatures, isOverlay, type PlanContext, remoteSubnets } from "./plan/context.ts";
import { frontendKey, type GroupObjects, groupObjects, MAPPING_FLAGS } from "./plan/objects.ts";
import type { Balancer, HcnPort, Network } from "./port.ts";
import { create, isEqual, type Programmed, settle, type Written } from "./work.ts";

interface FullSync {
  readonly programmed: Programmed;
  readonly written: Written;
  readonly network: Network;
}

/**
 * Reads HCN and makes it equal to the plan.
 *
 * @param known load balancers that this process has made, by key
 * @throws Error when there is no such network, or something of an overlay is missing
 */
export async function fullSync(
  port: HcnPort,
  plan: ForwardingPlan,
  known: ReadonlyMap<string, Balancer>,
  options: ResolvedOptions,
  features: { -readonly [Name in keyof HnsFeatures]: HnsFeatures[Name] },
): Promise<FullSync> {
  const network = await networkOf(port, options.networkName);
  const context = await contextOf(port, network, options, features);
  const endpoints = new Endpoints();
  await endpoints.refresh(port, network.ID);
  const ledger = new Ledger();
  await inSlices(fill(ledger, plan, context, options.onProblem), options);
  await makeSource(port, endpoints, network, context);
  const found = await readBalancers(port, plan.family);
  const balancers = adopted(found, known);
  const programmed: Programmed = {
    network: network.ID,
    context,
    ledger,
    endpoints,
    balancers,
    refused: new Map(),
    missing: new Set(),
  };
  await leaveOthers(port, programmed, plan);
  const made = [...endpoints.made(context)];
  const inUse = usedByOthers(found, balancers);
  const stale = made.filter(({ id, address }) => ledger.endpoint(address) === undefined && !inUse.has(id));
  const touched = {
    keys: [...ledger.keys, ...balancers.keys()],
    addresses: [...ledger.addresses, ...stale.map(({ address }) => address)],
  };
  // HNS of Windows Server 2019 may have made an address twice.
  const spare = made.filter(({ id, address }) => endpoints.remote(address)?.ID !== id && !inUse.has(id));
  const ids = spare.map(({ id }) => id);
  return { programmed, written: await settle(port, programmed, { ...touched, spare: ids }, features), network };
}

/**
 * The network of the pods.
 *
 * @throws Error when there is none of this name
 */
export async function networkOf(port: HcnPort, name: string): Promise<Network> {
  const network = await port.network(name);
  if (network !== undefined) return network;
  throw new Error(`there is no HCN network ${name}: the CNI plugin makes it; winkernel.networkName must be its name`);
}

/** What else the objects depend on. */
async function contextOf(
  port: HcnPort,
  network: Network,
  options: ResolvedOptions,
  features: HnsFeatures,
): Promise<PlanContext> {
  const { family, enableDSR: dsr, forwardHealthCheckVip, rootHnsEndpointName, healthzPort } = options;
  const root = forwardHealthCheckVip ? await port.endpointByName(rootHnsEndpointName) : undefined;
  if (forwardHealthCheckVip && root === undefined) {
    options.onProblem(
      `there is no endpoint ${rootHnsEndpointName}; probes of load-balancer addresses are not forwarded`,
    );
  }
  const overlay = isOverlay(network) ? await overlayOf(network, options, features) : undefined;
  return { family, overlay, dsr, dsrSupported: features.dsr, health: root && { endpoint: root.ID, healthzPort } };
}

async function overlayOf(
  network: Network,
  { family, sourceVip, nodeAddress }: ResolvedOptions,
  { remoteSubnets: supported }: HnsFeatures,
): Promise<PlanContext["overlay"]> {
  if (!supported) throw new Error("this version of Windows has no overlay networks with remote subnets");
  if (family === "IPv6") throw new Error("Windows has no IPv6 on overlay networks");
  if (sourceVip === "") throw new Error("winkernel.sourceVip is empty; an overlay network needs one (--source-vip)");
  const node = await nodeAddress();
  if (node === undefined) {
    throw new Error("the node's address and the MAC address of its interface are not known; set bindAddress to it");
  }
  return { ...node, sourceVip, subnets: remoteSubnets(network) };
}

function* fill(
  ledger: Ledger,
  plan: ForwardingPlan,
  context: PlanContext,
  onProblem: (problem: string) => void,
): Generator<void, void> {
  for (const group of plan.groups.values()) {
    replaceGroup(ledger, group.id, group, context, onProblem);
    yield;
  }
}

/**
 * Replaces in the ledger what a group needs.
 *
 * @param group undefined: it is gone
 */
export function replaceGroup(
  ledger: Ledger,
  id: string,
  group: ServicePortGroup | undefined,
  context: PlanContext,
  onProblem: (problem: string) => void,
): Touched & { readonly objects: GroupObjects | undefined } {
  const objects = group && groupObjects(group, context);
  if (group && objects?.ports) onProblem(portsProblem(group.name, objects.ports));
  return { objects, ...ledger.replace(id, objects, context) };
}

function portsProblem(name: string, { used, others }: NonNullable<GroupObjects["ports"]>): string {
  return `${name}: its endpoints have different ports; Windows sends all of its clients to port ${used}, not to ${others.join(", ")}`;
}

/** On an overlay, packets leave from an endpoint of this node (upstream: newSourceVIP). */
async function makeSource(
  port: HcnPort,
  endpoints: Endpoints,
  network: Network,
  { overlay }: PlanContext,
): Promise<void> {
  if (overlay === undefined || endpoints.idOf({ address: overlay.sourceVip, local: false }) !== undefined) return;
  const { sourceVip, mac } = overlay;
  endpoints.add(
    await create(port, {
      HostComputeNetwork: network.ID,
      IpConfigurations: [{ IpAddress: sourceVip }],
      MacAddress: mac,
    }),
  );
}

/** Those of a family, by key. */
async function readBalancers(port: HcnPort, family: ForwardingPlan["family"]): Promise<Map<string, Balancer>> {
  const found = new Map<string, Balancer>();
  for (const id of await port.loadBalancerIds()) {
    const balancer = await port.loadBalancer(id);
    if (balancer === undefined || (balancer.PortMappings ?? []).length === 0) continue;
    const key = frontendKey(balancer);
    if (key.endsWith(family)) found.set(key, { ...balancer, ID: canonicalId(id) });
  }
  return found;
}

/** What this process wrote and HCN gives back in its own words, is as it was written. */
function adopted(found: ReadonlyMap<string, Balancer>, known: ReadonlyMap<string, Balancer>): Map<string, Balancer> {
  return new Map(
    Array.from(found, ([key, balancer]) => {
      const own = known.get(key);
      const intact = own?.ID === balancer.ID && sameEndpoints(own, balancer);
      return [key, intact ? own : balancer];
    }),
  );
}

function sameEndpoints(one: Balancer, other: Balancer): boolean {
  const { HostComputeEndpoints = [], PortMappings = [] } = other;
  return isEqual(one, { ...one, HostComputeEndpoints, ...(PortMappings.length === 1 ? {} : { PortMappings }) });
}

/**
 * Takes out what no service of the plan has and is not ours. Ours are, of those that lead to this network: node ports,
 * external and load-balancer addresses as service proxies mark them, addresses of services, and those that ClusterIPs
 * are allocated from.
 */
async function leaveOthers(port: HcnPort, programmed: Programmed, plan: ForwardingPlan): Promise<void> {
  const { balancers, ledger } = programmed;
  const addresses = new Set<string>();
  for (const { frontends } of plan.groups.values()) {
    for (const { address } of frontends) if (address !== undefined) addresses.add(address);
  }
  const isServiceAddress = inAnyOf(plan.node.serviceCIDRs ?? []);
  for (const [key, balancer] of balancers) {
    if (ledger.balancer(key) !== undefined) continue;
    const [address] = balancer.FrontendVIPs ?? [];
    const known = address !== undefined && (addresses.has(address) || isServiceAddress(address));
    if (!(known || isMarked(balancer)) || !(await leadsHere(port, balancer, programmed))) balancers.delete(key);
  }
}

/** As service proxies mark node ports, external and load-balancer addresses. */
function isMarked({ PortMappings = [] }: Balancer): boolean {
  return PortMappings.length === 1 && PortMappings.every(({ Flags = 0 }) => (Flags & MAPPING_FLAGS.externalPort) !== 0);
}

/** Whether none of its endpoints is another network's. Those that are gone belong to no network. */
export async function leadsHere(
  port: HcnPort,
  { HostComputeEndpoints = [] }: Balancer,
  { endpoints, network }: Pick<Programmed, "endpoints" | "network">,
): Promise<boolean> {
  for (const id of HostComputeEndpoints.map(canonicalId)) {
    if (endpoints.has(id)) continue;
    const other = await port.endpoint(id);
    if (other !== undefined && canonicalId(other.HostComputeNetwork) !== canonicalId(network)) return false;
  }
  return true;
}

/** Ids of endpoints that load balancers lead to which are not ours. */
function usedByOthers(found: ReadonlyMap<string, Balancer>, ours: ReadonlyMap<string, Balancer>): ReadonlySet<string> {
  const others = [...found].filter(([key]) => !ours.has(key));
  return new Set(others.flatMap(([, { HostComputeEndpoints = [] }]) => HostComputeEndpoints.map(canonicalId)));
}
