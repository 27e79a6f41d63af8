import { type ServiceKey, type ServicePortGroup, splitKey } from "@fairlead/core";
import type { ServiceConnections } from "../metrics/service-metrics.ts";

/** Endpoint → connections. */
type Endpoints = Map<string, number>;

/** Connections by service, port and endpoint. */
export class ConnectionCounts {
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
