/** Which connections endpoints have, read from the kernel and from relays. */

import type { RelayTraffic } from "@fairlead/backend-userspace";
import { type Clock, errorChainText, slices, socketText, type Yield } from "@fairlead/base";
import type { ServiceMetricsSettings } from "@fairlead/config";
import { type NodePortAddresses, type Planner, type ServiceKey, type ServicePortGroup, splitKey } from "@fairlead/core";
import type { Connection } from "@fairlead/kernel";
import { reused } from "./http/metrics-app.ts";
import type { Kernel } from "./kernel.ts";
import type { Log } from "./log.ts";
import type { ReadServiceConnections, ServiceConnections } from "./metrics/service-metrics.ts";

export interface ConnectionReaderParts {
  readonly settings: ServiceMetricsSettings;
  readonly planner: Pick<Planner, "lookup" | "plan">;
  readonly tracking: Kernel["tracking"];
  /** Where this process itself carries the traffic. */
  readonly relays?: Pick<RelayTraffic, "connections"> | undefined;
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Pick<Log, "warn">;
}

/** Milliseconds for which a reading is given again: it costs as much as there are connections. */
const FRESH_MS = 5_000;

/**
 * Reads the connections that services have through this node from connection tracking on request; a caller that asks
 * meanwhile waits for the same reading. Nothing is done and next to nothing held without a request.
 */
export function connectionReader(parts: ConnectionReaderParts): ReadServiceConnections {
  const { settings, clock, log } = parts;
  let [failing, bounded] = [false, false];
  return reused(clock, FRESH_MS, async () => {
    try {
      const read = await readConnections(parts);
      failing = false;
      if (read.leftOut > 0 && !bounded) {
        bounded = true;
        const fields = { leftOut: read.leftOut, maxSeries: settings.maxSeries };
        log.warn(
          "Too many services for connection metrics; further services get none, traffic is not affected",
          fields,
        );
      }
      return read;
    } catch (error) {
      const said = failing;
      failing = true;
      if (!said) {
        log.warn("Cannot read conntrack; service connection metrics disabled", {
          error: errorChainText(error),
        });
      }
      return undefined;
    }
  });
}

async function readConnections({
  settings,
  planner,
  tracking,
  relays,
}: ConnectionReaderParts): Promise<ServiceConnections> {
  const yielding = slices();
  const wanted = wantedServices(settings);
  const answers = relays === undefined ? endpointOf : await relayedEndpoints(relays, yielding);
  const counts = new ConnectionCounts();
  for await (const connection of (await tracking()).list()) {
    const group = groupCalled(planner, connection);
    const endpoint = group && wanted(group.service) ? answers(connection) : undefined;
    if (group !== undefined && endpoint !== undefined) counts.add(group, endpoint);
    await yielding();
  }
  return counts.within(settings.maxSeries);
}

function wantedServices({ namespaces }: ServiceMetricsSettings): (service: ServiceKey) => boolean {
  if (namespaces === "all") return () => true;
  const wanted = new Set(namespaces);
  return (service) => wanted.has(splitKey(service).namespace);
}

/** TCP's and SCTP's states of connections that are over, which the kernel remembers for a while. */
const OVER: ReadonlySet<string> = new Set(["TIME_WAIT", "CLOSE", "CLOSED"]);

/**
 * The service port whose frontend a client called; undefined: none that this proxy serves, nothing translated it here,
 * or it is over. Costs the same for each connection, however large the cluster is.
 */
function groupCalled(
  planner: Pick<Planner, "lookup" | "plan">,
  { family, protocol, original, reply, state }: Connection,
): ServicePortGroup | undefined {
  const { destination: address, destinationPort: port } = original;
  const translated = reply.source !== address || reply.sourcePort !== port;
  if (!translated || (state !== undefined && OVER.has(state))) return undefined;
  const lookup = planner.lookup(family);
  const addressed = lookup.at(protocol, address, port);
  if (addressed !== undefined) return addressed;
  const behind = lookup.atNodePort(protocol, port);
  return behind && servedAt(planner.plan(family).node.nodePortAddresses, address) ? behind : undefined;
}

/** Of `all`, which are the node's own, being translated is enough: what another node serves is translated there. */
function servedAt(served: NodePortAddresses, address: string): boolean {
  return served.kind === "all" || served.addresses.includes(address);
}

type Endpoints = Map<string, number>;

class ConnectionCounts {
  readonly #services = new Map<ServiceKey, Map<string, Endpoints>>();

  /** @param endpoint `10.144.1.5:8080` */
  add({ service, name }: Pick<ServicePortGroup, "service" | "name">, endpoint: string): void {
    const ports = this.#services.get(service) ?? new Map<string, Endpoints>();
    this.#services.set(service, ports);
    // namespace/name:port
    const port = name.slice(service.length + 1);
    const endpoints = ports.get(port) ?? new Map<string, number>();
    ports.set(port, endpoints);
    endpoints.set(endpoint, (endpoints.get(endpoint) ?? 0) + 1);
  }

  /** As many services as `max` series have room for, in the order of their names, each with all of its series. */
  within(max: number): ServiceConnections {
    const series: ServiceConnections["series"][number][] = [];
    let leftOut = 0;
    for (const [key, ports] of [...this.#services].sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (series.length + sizeOf(ports) > max) {
        leftOut += 1;
        continue;
      }
      const { namespace, name: service } = splitKey(key);
      for (const [port, endpoints] of ports) {
        for (const [endpoint, connections] of endpoints) {
          series.push({ namespace, service, port, endpoint, connections });
        }
      }
    }
    return { series, leftOut };
  }
}

function sizeOf(ports: ReadonlyMap<string, Endpoints>): number {
  let size = 0;
  for (const endpoints of ports.values()) size += endpoints.size;
  return size;
}

/** Who answers a connection in the end, as `address:port`; undefined: a relay that has no endpoint for it. */
type EndpointOf = (connection: Connection) => string | undefined;

/** What the kernel sees: it has translated the connection to its endpoint. */
const endpointOf: EndpointOf = ({ reply }) => socketText(reply.source, reply.sourcePort);

/** Where this process itself carries the traffic the kernel sees a relay, and only the relays know their endpoints. */
async function relayedEndpoints(relays: Pick<RelayTraffic, "connections">, yielding: Yield): Promise<EndpointOf> {
  const endpoints = new Map<string, string>();
  for (const { protocol, client, relay, endpoint } of relays.connections()) {
    const key = relayKey(protocol, socketText(client.address, client.port), socketText(relay.address, relay.port));
    endpoints.set(key, socketText(endpoint.address, endpoint.port));
    await yielding();
  }
  return ({ protocol, reply }) => {
    const client = socketText(reply.destination, reply.destinationPort);
    return endpoints.get(relayKey(protocol, client, socketText(reply.source, reply.sourcePort)));
  };
}

function relayKey(protocol: string, client: string, relay: string): string {
  return `${protocol} ${client} ${relay}`;
}
