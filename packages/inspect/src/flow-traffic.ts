/** Flows summed up by service, and what relays know of their endpoints. */

import { isObject, parseAddress, socketText, valueAt } from "@fairlead/base";
import type { Ownership, Protocol, ServiceKey } from "@fairlead/core";
import type { Flow, FlowEndpoint, FlowSocket, TrackedConnection, Volume } from "./flow.ts";

interface Traffic {
  readonly connections: number;
  /** Those that no answer has come to. */
  readonly unreplied: number;
  /** Sums of what the kernel counts; absent where it counts nothing. */
  readonly sent?: Volume;
  readonly received?: Volume;
}

export interface EndpointTraffic extends Traffic {
  /** Connections that the node's agent carries itself. */
  readonly relayed?: true;
  /** Absent, where they are not relayed: connections that nothing translated here. */
  readonly endpoint?: FlowEndpoint;
}

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

/** What the agent of a node in userspace mode relays, at the moment when it was asked. */
export interface Relays {
  /** Whether what answers a connection is a relay: to the kernel it is the endpoint. */
  answers(connection: TrackedConnection): boolean;
  /** The endpoint that a relay has given a connection; undefined: none yet, or it is over. */
  endpointOf(connection: TrackedConnection): FlowSocket | undefined;
}

/**
 * Reads the agent's page `/relays`: JSON by lines, one for each relay that listens and for each connection.
 *
 * @throws SyntaxError when it is something else
 */
export function readRelays(page: string): Relays {
  const listening = new Set<string>();
  const endpoints = new Map<string, FlowSocket>();
  for (const line of page.split("\n")) {
    if (line === "") continue;
    const said: unknown = JSON.parse(line);
    if (isObject(said) && said["listening"] !== undefined) {
      const relay = socketIn(said["listening"]);
      listening.add(`${protocolIn(said["listening"])} ${socketText(relay.address, relay.port)}`);
    } else if (isObject(said) && said["connection"] !== undefined) {
      const connection = said["connection"];
      const [client, relay, endpoint] = ["client", "relay", "endpoint"].map((name) =>
        socketIn(valueAt(connection, name)),
      );
      if (client !== undefined && relay !== undefined && endpoint !== undefined) {
        endpoints.set(relayKey(protocolIn(connection), client, relay), endpoint);
      }
    }
  }
  return {
    answers: ({ protocol, reply }) => listening.has(`${protocol} ${socketText(reply.source, reply.sourcePort)}`),
    endpointOf({ protocol, reply }) {
      const client = { address: reply.destination, port: reply.destinationPort };
      return endpoints.get(relayKey(protocol, client, { address: reply.source, port: reply.sourcePort }));
    },
  };
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

function relayKey(protocol: string, client: FlowSocket, relay: FlowSocket): string {
  return `${protocol} ${socketText(client.address, client.port)} ${socketText(relay.address, relay.port)}`;
}

function socketIn(said: unknown): FlowSocket {
  const [address, port] = [valueAt(said, "address"), valueAt(said, "port")];
  const parsed = typeof address === "string" ? parseAddress(address) : undefined;
  if (parsed === undefined || typeof port !== "number") {
    throw new SyntaxError(`${JSON.stringify(said)} must have an IP address and a port`);
  }
  return { address: parsed.text, port };
}

function protocolIn(said: unknown): string {
  const protocol = valueAt(said, "protocol");
  if (protocol === "TCP" || protocol === "UDP") return protocol;
  throw new SyntaxError(`${JSON.stringify(said)} must have protocol TCP or UDP`);
}
