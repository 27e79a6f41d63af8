/** Whose a tracked connection is: service, endpoint and whether that still exists. */

import { familyOf, IP_FAMILIES } from "@fairlead/base";
import {
  type EndpointSlice,
  FRONTEND_KINDS,
  type FrontendKind,
  frontendSpecs,
  type IPFamily,
  nodePortChoice,
  type Protocol,
  type ServiceKey,
  type ServicePortSpec,
  type SliceEndpoint,
} from "@fairlead/core";
import type { EndpointCondition, Flow, FlowEndpoint, FlowSocket, TrackedConnection } from "./flow.ts";
import type { Relays } from "./flow-traffic.ts";
import type { PlannedNode } from "./node-plan.ts";

/**
 * Says whose a connection is; undefined: no service's. Pure.
 *
 * @param relays absent: the node's agent relays nothing
 */
export type AttributeFlow = (connection: TrackedConnection, relays?: Relays) => Flow | undefined;

/**
 * Attributes connections to services, endpoints and owners, by the plan and the objects of a node. It costs as much as
 * the cluster has frontends once, and then the same for each connection.
 *
 * A connection is a service's if its client called one of the service's frontends. One to a node port that nothing
 * translated is the host's own, and so is one that a pod has with another by their own addresses: none of these is
 * given.
 *
 * @param nodeAddresses the node's own addresses, where node ports are served; absent: a port that is some service's
 * node port is taken for it at any address
 */
export function flowAttribution(
  planned: PlannedNode,
  nodeAddresses?: { has(address: string): boolean },
): AttributeFlow {
  const frontendAt = frontendIndex(planned, nodeAddresses);
  const endpointAt = endpointIndex(planned);
  return (connection, relays) => {
    const { family, protocol, original, reply } = connection;
    const { destination: address, destinationPort: number } = original;
    const called = frontendAt(protocol, address, number);
    if (called === undefined) return undefined;
    const { service, port, kind } = called;
    const owner = planned.planner.ownership(service, family)?.ownership;
    const translated = reply.source !== address || reply.sourcePort !== number;
    if (owner === undefined || (FRONTEND_KINDS[kind].at === "node-port" && !translated)) return undefined;
    const end = translated ? endOf(connection, relays) : undefined;
    return {
      family,
      protocol,
      client: { address: original.source, port: original.sourcePort },
      frontend: { kind, address, port: number },
      service,
      port: port.name,
      owner,
      ...(relays?.answers(connection) && { relayed: true }),
      ...(end && { endpoint: endpointAt(service, port, family, end.address, end.port) }),
      replied: connection.replied,
      ...optional(connection),
    };
  };
}

/** Who answers in the end; undefined: it is a relay, which has no endpoint for it yet, or no longer. */
function endOf(connection: TrackedConnection, relays: Relays | undefined): FlowSocket | undefined {
  const { source: address, sourcePort: port } = connection.reply;
  return relays?.answers(connection) ? relays.endpointOf(connection) : { address, port };
}

function optional({ state, offloaded, expires, sent, received }: TrackedConnection): Partial<Flow> {
  return {
    ...(state !== undefined && { state }),
    ...(offloaded && { offloaded }),
    ...(expires !== undefined && { expires }),
    ...(sent !== undefined && { sent }),
    ...(received !== undefined && { received }),
  };
}

type FindEndpoint = (
  service: ServiceKey,
  port: ServicePortSpec,
  family: IPFamily,
  address: string,
  number: number,
) => FlowEndpoint;

/** The endpoints of a planned cluster, used or not; those of a service port are read once, when it is asked for. */
function endpointIndex({ state }: PlannedNode): FindEndpoint {
  const known = new Map<string, ReadonlyMap<string, SliceEndpoint>>();
  return (service, port, family, address, number) => {
    const key = `${service} ${family} ${port.protocol} ${port.name}`;
    const endpoints = known.get(key) ?? endpointsOf(state.slices(service), port, family);
    known.set(key, endpoints);
    const found = endpoints.get(`${address} ${number}`);
    const { nodeName } = found ?? {};
    return { address, port: number, condition: conditionOf(found), ...(nodeName !== undefined && { nodeName }) };
  };
}

function endpointsOf(
  slices: readonly EndpointSlice[],
  { name, protocol }: ServicePortSpec,
  family: IPFamily,
): ReadonlyMap<string, SliceEndpoint> {
  const endpoints = new Map<string, SliceEndpoint>();
  for (const slice of slices) {
    if (slice.family !== family) continue;
    for (const { port } of slice.ports.filter((one) => one.name === name && one.protocol === protocol)) {
      for (const endpoint of slice.endpoints) {
        const key = `${endpoint.address} ${port}`;
        // While an endpoint moves from one slice to another it stands in both.
        if (endpoints.get(key)?.ready !== true) endpoints.set(key, endpoint);
      }
    }
  }
  return endpoints;
}

function conditionOf(endpoint: SliceEndpoint | undefined): EndpointCondition {
  if (endpoint === undefined) return "gone";
  if (endpoint.terminating) return "terminating";
  return endpoint.ready ? "ready" : "not-ready";
}

/** The frontend that a client called. */
interface CalledFrontend {
  readonly service: ServiceKey;
  readonly port: ServicePortSpec;
  readonly kind: FrontendKind;
}

/** Finds what a client called; undefined: no service has that address and port. */
type FindFrontend = (protocol: Protocol, address: string, port: number) => CalledFrontend | undefined;

/**
 * All frontends of a planned cluster, those of other networks among them. Where several services claim one, it is the
 * one's that the plan gives it to.
 *
 * @param nodeAddresses where node ports are served; absent: everywhere
 */
function frontendIndex(planned: PlannedNode, nodeAddresses?: { has(address: string): boolean }): FindFrontend {
  const { planner } = planned;
  const index = Map.groupBy(calledFrontends(planned, IP_FAMILIES), ({ address, found, family, port }) =>
    placeOf(found.port.protocol, address ?? family, port),
  );
  const at = (protocol: Protocol, where: string, port: number) =>
    index.get(placeOf(protocol, where, port))?.map(({ found }) => found);
  return (protocol, address, port) => {
    const family = familyOf(address);
    const lookup = planner.lookup(family);
    const here = at(protocol, address, port);
    if (here !== undefined) return heldBy(here, lookup.at(protocol, address, port)?.service);
    if (nodeAddresses?.has(address) === false) return undefined;
    const behind = at(protocol, family, port);
    return behind && heldBy(behind, lookup.atNodePort(protocol, port)?.service);
  };
}

function* calledFrontends({ state, options }: PlannedNode, families: readonly IPFamily[]) {
  for (const key of state.keys()) {
    const service = state.service(key);
    if (service === undefined) continue;
    for (const family of families) {
      // A family that the service has no ClusterIP of is none of its.
      if (!service.clusterIPs.some((address) => familyOf(address) === family)) continue;
      const chosen = nodePortChoice(service, family, options)?.addresses;
      for (const port of service.ports) {
        for (const one of frontendSpecs(service, port, family, "nothing", undefined, chosen)) {
          const { kind, address, port: number } = one;
          yield { family, address, port: number, found: { service: key, port, kind } };
        }
      }
    }
  }
}

/** @param where its address; of a node port its family */
function placeOf(protocol: Protocol, where: string, port: number): string {
  return `${protocol} ${where} ${port}`;
}

function heldBy(claimants: readonly CalledFrontend[], holder: ServiceKey | undefined): CalledFrontend | undefined {
  return claimants.find(({ service }) => service === holder) ?? claimants[0];
}
