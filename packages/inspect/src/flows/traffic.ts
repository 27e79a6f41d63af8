import { socketText } from "@fairlead/base";
import type { Ownership, Protocol, ServiceKey } from "@fairlead/core";
import type { Flow, FlowEndpoint } from "./flow.ts";
import type { Volume } from "./tracked.ts";

/** What some connections amount to. */
interface Traffic {
  readonly connections: number;
  /** Those that no answer has come to. */
  readonly unreplied: number;
  /** Sums of what the kernel counts; absent where it counts nothing. */
  readonly sent?: Volume;
  readonly received?: Volume;
}

/** The connections that one endpoint has of a service port. */
export interface EndpointTraffic extends Traffic {
  /** Connections that the node's agent carries itself. */
  readonly relayed?: true;
  /** Absent, where they are not relayed: connections that nothing translated here. */
  readonly endpoint?: FlowEndpoint;
}

/** The connections of one port of a service. */
export interface ServiceTraffic extends Traffic {
  readonly service: ServiceKey;
  readonly port: string;
  readonly protocol: Protocol;
  readonly owner: Ownership;
  /** Those that hang on endpoints that are gone. */
  readonly gone: number;
  /** Most connections first. */
  readonly endpoints: readonly EndpointTraffic[];
}

/** Sums connections up by service port and endpoint, the ports with most connections first. */
export function trafficByService(flows: Iterable<Flow>): readonly ServiceTraffic[] {
  const ports = Map.groupBy(flows, ({ service, port, protocol, owner }) => `${service} ${protocol} ${port} ${owner}`);
  const rows = Array.from(ports.values(), (own) => serviceTraffic(own));
  return rows.flat().sort((a, b) => b.connections - a.connections || compare(nameOf(a), nameOf(b)));
}

function serviceTraffic(flows: readonly Flow[]): readonly ServiceTraffic[] {
  const [first] = flows;
  if (first === undefined) return [];
  const { service, port, protocol, owner } = first;
  const gone = flows.filter(({ endpoint }) => endpoint?.condition === "gone").length;
  return [{ service, port, protocol, owner, ...sum(flows), gone, endpoints: byEndpoint(flows) }];
}

function byEndpoint(flows: readonly Flow[]): readonly EndpointTraffic[] {
  const ends = Map.groupBy(flows, ({ endpoint, relayed }) => `${relayed ?? false} ${endpointName(endpoint)}`);
  return Array.from(ends.values(), (own): EndpointTraffic => {
    const { endpoint, relayed } = own[0] ?? {};
    return { ...(relayed && { relayed }), ...(endpoint && { endpoint }), ...sum(own) };
  }).sort((a, b) => b.connections - a.connections || compare(endpointName(a.endpoint), endpointName(b.endpoint)));
}

function sum(flows: readonly Flow[]): Traffic {
  const sent = volume(flows.flatMap((flow) => flow.sent ?? []));
  const received = volume(flows.flatMap((flow) => flow.received ?? []));
  const unreplied = flows.filter(({ replied }) => !replied).length;
  return { connections: flows.length, unreplied, ...(sent && { sent }), ...(received && { received }) };
}

function volume(all: readonly Volume[]): Volume | undefined {
  if (all.length === 0) return undefined;
  return {
    bytes: all.reduce((total, { bytes }) => total + bytes, 0),
    packets: all.reduce((total, { packets }) => total + packets, 0),
  };
}

function nameOf({ service, port, protocol }: ServiceTraffic): string {
  return `${service} ${port} ${protocol}`;
}

function endpointName(endpoint: FlowEndpoint | undefined): string {
  return endpoint === undefined ? "" : socketText(endpoint.address, endpoint.port);
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
