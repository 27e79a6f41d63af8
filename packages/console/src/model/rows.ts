/** What is shown of Services and networks: a row for each Service, and their search. */

import { IP_FAMILIES, type IPFamily, socketText } from "@fairlead/base";
import type { ClusterView, EndpointSlice, Ownership, Planner, Service, ServiceKey } from "@fairlead/core";
import { type PlannedNode, suggestCIDRs } from "@fairlead/inspect";
import { type LearnedOnce, type MirroredSlices, ownershipReport } from "@fairlead/intake";
import type { NetworksAnswer, ServiceRow } from "../protocol.ts";
import type { AgentSetup } from "./plans.ts";

interface RowParts {
  readonly state: ClusterView;
  readonly mirrored: MirroredSlices;
  readonly planner: Planner;
}

/** What the list says of a service. */
export function serviceRow(
  { state, mirrored, planner }: RowParts,
  service: ServiceKey,
  nodeName: string,
): ServiceRow | undefined {
  const object = state.service(service);
  if (object === undefined) return undefined;
  return {
    service,
    owners: ownersOf(planner, service),
    frontends: frontendsOf(object),
    ...counts(slicesOf(state, mirrored, service), nodeName),
    ...(object.created !== undefined && { created: object.created }),
  };
}

/**
 * The services that a text finds: by a part of their name, by an address or the beginning of one, theirs or one of
 * their endpoints', or by a port or node port.
 *
 * @returns in the byte order of their names
 */
export function searchServices(state: ClusterView, text: string): readonly ServiceKey[] {
  const wanted = text.trim().toLowerCase();
  const found: ServiceKey[] = [];
  for (const key of state.keys()) {
    const service = state.service(key);
    if (service !== undefined && (wanted === "" || matches(state, key, service, wanted))) found.push(key);
  }
  return found.sort();
}

/**
 * Whose pods are where, as far as configuration and objects say it.
 *
 * @param learned of networks' own objects; undefined: nothing is learned
 */
export function networksOf(
  planned: PlannedNode,
  { config, filter }: AgentSetup,
  learned: LearnedOnce | undefined,
): Omit<NetworksAnswer, "planAt"> {
  const { clusterCIDRs: own, excludeCIDRs: others } = learned?.decision ?? { ...config, ...filter };
  const nodeAddresses = Object.values(planned.options.nodeIPs);
  return {
    cidrs: [
      ...config.clusterCIDRs.map((cidr) => ({ cidr, whose: "ours", from: "--cluster-cidr" }) as const),
      ...filter.excludeCIDRs.map((cidr) => ({ cidr, whose: "another", from: "--exclude-cluster-cidr" }) as const),
    ],
    ...(learned && { learned: learned.report }),
    services: ownershipReport(planned.planner.ownerships(), learned?.report, planned.pods).services,
    // Without a CIDR of the own pods every pod would look like another network's.
    suggestedCIDRs: own.length === 0 ? [] : suggestCIDRs(planned.state, { known: [...own, ...others], nodeAddresses }),
  };
}

function ownersOf(planner: Planner, service: ServiceKey): Partial<Record<IPFamily, Ownership>> {
  const owners = IP_FAMILIES.flatMap((family) => {
    const decision = planner.ownership(service, family);
    return decision === undefined ? [] : [[family, decision.ownership] as const];
  });
  return Object.fromEntries(owners);
}

/** Every frontend that the object asks for, also those that another program serves. */
function frontendsOf({ clusterIPs, externalIPs, loadBalancerIPs, ports }: Service): readonly string[] {
  const addresses = [...clusterIPs, ...externalIPs, ...loadBalancerIPs];
  return ports.flatMap(({ port, protocol, nodePort }) => {
    const suffix = protocol === "TCP" ? "" : `/${protocol.toLowerCase()}`;
    const sockets = addresses.map((address) => `${socketText(address, port)}${suffix}`);
    return nodePort === undefined ? sockets : [...sockets, `node port ${nodePort}${suffix}`];
  });
}

/** Where the pods really are: a user-defined network's in the place of the default one's. */
function slicesOf(state: ClusterView, mirrored: MirroredSlices, service: ServiceKey): readonly EndpointSlice[] {
  const own = mirrored.of(service).map(({ slice }) => slice);
  return own.length > 0 ? own : state.slices(service);
}

function counts(slices: readonly EndpointSlice[], nodeName: string) {
  const [all, ready, local, draining] = [new Set(), new Set(), new Set(), new Set()];
  for (const { endpoints } of slices) {
    for (const endpoint of endpoints) {
      const { address } = endpoint;
      all.add(address);
      if (endpoint.ready) ready.add(address);
      if (endpoint.ready && endpoint.nodeName === nodeName) local.add(address);
      if (endpoint.terminating && endpoint.serving) draining.add(address);
    }
  }
  return { endpoints: all.size, ready: ready.size, local: local.size, draining: draining.size };
}

function matches(state: ClusterView, key: ServiceKey, service: Service, wanted: string): boolean {
  if (key.includes(wanted)) return true;
  if (!/^[\d.:a-f[\]/]+$/.test(wanted)) return false;
  const { clusterIPs, externalIPs, loadBalancerIPs, ports } = service;
  const [address = "", port] = socketOf(wanted);
  const begins = (one: string) => one.startsWith(address);
  const hasAddress =
    [...clusterIPs, ...externalIPs, ...loadBalancerIPs].some(begins) ||
    state.slices(key).some(({ endpoints }) => endpoints.some((one) => begins(one.address)));
  if (hasAddress) return port === undefined || ports.some((one) => String(one.port) === port);
  return ports.some((one) => String(one.port) === wanted || String(one.nodePort) === wanted);
}

/** `10.96.0.10:80` and `[fd00::1]:80` have a port; `fd00::1` has none. */
function socketOf(text: string): readonly [address: string, port?: string] {
  const [, six, four, port] = /^(?:\[([^\]]*)\]|([\d.]+))(?::(\d+))?$/.exec(text) ?? [];
  const address = six ?? four ?? text;
  return port === undefined ? [address] : [address, port];
}
