import { Gauge, type Registry } from "prom-client";

/** The connections that one endpoint has of a service port; the fields but `connections` are the labels. */
interface EndpointConnections {
  readonly namespace: string;
  readonly service: string;
  /** "" where the port has no name. */
  readonly port: string;
  readonly endpoint: string;
  readonly connections: number;
}

export interface ServiceConnections {
  readonly series: readonly EndpointConnections[];
  /** Services that have connections and no series, because there are too many. */
  readonly leftOut: number;
}

/** Undefined: they cannot be read now. */
export type ReadServiceConnections = () => Promise<ServiceConnections | undefined>;

/**
 * Connections by service port and endpoint. There are no totals: what the kernel has counted for a connection goes with
 * its entry.
 *
 * @param read called by each metric when metrics are read, so it must be cheap when it is called again
 */
export function addServiceMetrics(registry: Registry, read: ReadServiceConnections): void {
  const add = <L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    fill: (gauge: Gauge<L>, said: ServiceConnections | undefined) => void,
  ) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        const said = await read();
        this.reset();
        fill(this, said);
      },
    });
  add(
    "fairlead_service_connections",
    "Open connections in conntrack, by service port and endpoint",
    ["namespace", "service", "port", "endpoint"] as const,
    (gauge, said) => {
      for (const { connections, ...labels } of said?.series ?? []) gauge.set(labels, connections);
    },
  );
  add(
    "fairlead_service_connections_left_out",
    "Services with connections without series, because serviceMetrics.maxSeries is reached",
    [] as const,
    (gauge, said) => gauge.set(said?.leftOut ?? 0),
  );
  add("fairlead_service_connections_blind", "1 while connection tracking cannot be read", [] as const, (gauge, said) =>
    gauge.set(said === undefined ? 1 : 0),
  );
}
