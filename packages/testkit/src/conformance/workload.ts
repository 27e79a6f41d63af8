import type { IPFamily, Protocol, TrafficPolicy } from "@fairlead/core";
import { addressOf, type Host } from "../addresses/host.ts";
import { type EndpointFields, endpointSlice } from "../objects/endpoint-slice.ts";
import type { RawObject } from "../objects/raw.ts";
import { service } from "../objects/service.ts";

/** An endpoint of a workload: a host, ready unless it says otherwise. */
export type WorkloadEndpoint = Host | ({ readonly host: Host } & Omit<EndpointFields, "address" | "nodeName">);

export interface WorkloadFields {
  readonly endpoints: readonly WorkloadEndpoint[];
  /** Default ["IPv4"]. */
  readonly families?: readonly IPFamily[];
  /** Families in which it has endpoints; default: all of them. */
  readonly servedFamilies?: readonly IPFamily[];
  /** Which frontends it has alongside its ClusterIP. */
  readonly nodePort?: boolean;
  readonly external?: boolean;
  readonly loadBalancer?: "VIP" | "Proxy";
  /** Default TCP. */
  readonly protocol?: Protocol;
  /** Default 80. */
  readonly port?: number;
  /** Default 8080. */
  readonly targetPort?: number;
  readonly internal?: TrafficPolicy;
  readonly externally?: TrafficPolicy;
  readonly sourceRanges?: readonly string[];
  readonly affinitySeconds?: number;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
}

/** A service with its endpoints, and the addresses at which it is to be had. All of them follow from its number. */
export interface Workload {
  readonly objects: readonly RawObject[];
  readonly clusterIP: Readonly<Record<IPFamily, string>>;
  readonly externalIP: Readonly<Record<IPFamily, string>>;
  readonly loadBalancerIP: Readonly<Record<IPFamily, string>>;
  readonly port: number;
  readonly nodePort: number;
  readonly healthCheckPort: number;
}

/** @param number 1…199, unique among the workloads of a table but for those that are states of one service */
export function workload(number: number, fields: WorkloadFields): Workload {
  const name = `svc-${number}`;
  const addresses = workloadAddresses(number, fields.port ?? 80);
  const families = fields.families ?? ["IPv4"];
  const slices = (fields.servedFamilies ?? families).map((family) => slice(name, family, fields));
  return { ...addresses, objects: [service(name, serviceFields(addresses, families, fields)), ...slices] };
}

function workloadAddresses(number: number, port: number): Omit<Workload, "objects"> {
  return {
    clusterIP: { IPv4: `10.96.2.${number}`, IPv6: `fd00:10:96::2:${number}` },
    externalIP: { IPv4: `192.0.2.${number}`, IPv6: `fd00:192::${number}` },
    loadBalancerIP: { IPv4: `203.0.113.${number}`, IPv6: `fd00:203::${number}` },
    port,
    nodePort: 30_000 + number,
    healthCheckPort: 31_000 + number,
  };
}

function serviceFields(addresses: Omit<Workload, "objects">, families: readonly IPFamily[], fields: WorkloadFields) {
  const { port, nodePort, healthCheckPort } = addresses;
  const of = (kind: Readonly<Record<IPFamily, string>>) => families.map((family) => kind[family]);
  const { loadBalancer, protocol = "TCP", targetPort = 8080, internal, externally } = fields;
  const hasNodePort = fields.nodePort === true || loadBalancer !== undefined;
  return {
    type: serviceType(fields),
    clusterIPs: of(addresses.clusterIP),
    ports: [{ port, targetPort, protocol, ...(hasNodePort && { nodePort }) }],
    ...(fields.external && { externalIPs: of(addresses.externalIP) }),
    ...(loadBalancer && { ingress: of(addresses.loadBalancerIP).map((ip) => ({ ip, ipMode: loadBalancer })) }),
    ...(fields.sourceRanges && { sourceRanges: fields.sourceRanges }),
    ...(internal && { internalTrafficPolicy: internal }),
    ...(externally && { externalTrafficPolicy: externally }),
    ...(loadBalancer && externally === "Local" && { healthCheckNodePort: healthCheckPort }),
    ...(fields.affinitySeconds !== undefined && { affinitySeconds: fields.affinitySeconds }),
    ...(fields.annotations && { annotations: fields.annotations }),
    ...(fields.labels && { labels: fields.labels }),
  } as const;
}

function serviceType({ loadBalancer, nodePort }: WorkloadFields) {
  if (loadBalancer !== undefined) return "LoadBalancer";
  return nodePort === true ? "NodePort" : "ClusterIP";
}

function slice(service: string, family: IPFamily, fields: WorkloadFields): RawObject {
  const { protocol = "TCP", targetPort = 8080 } = fields;
  return endpointSlice(`${service}-${family.toLowerCase()}`, {
    service,
    family,
    ports: [{ port: targetPort, protocol }],
    endpoints: fields.endpoints.map((endpoint) => endpointFields(endpoint, family)),
  });
}

function endpointFields(endpoint: WorkloadEndpoint, family: IPFamily): EndpointFields {
  const { host, ...conditions } = "host" in endpoint ? endpoint : { host: endpoint };
  return {
    address: addressOf(host, family),
    ...(host.node !== undefined && { nodeName: host.node }),
    ...conditions,
  };
}
