import { isIPv6 } from "node:net";
import type { EndpointSlice, Protocol, Service, ServicePortSpec } from "@fairlead/core";
import type { NbCommand } from "../topology.ts";

/** An address and port of a service, with the endpoints that one of OVN's load balancers has for it. */
export interface VirtualAddress {
  /** One of `balancers`. */
  readonly balancer: string;
  /** `10.96.0.9:80`, `[fd00:10:96::9]:80` */
  readonly at: string;
  /** The same of each endpoint, separated by commas. */
  readonly backends: string;
}

const PROTOCOLS = ["tcp", "udp", "sctp"] as const;
/** kube-ovn has the same for every service with affinity (util.DefaultServiceSessionStickinessTimeout). */
const AFFINITY_SECONDS = 10_800;

/** kube-ovn's load balancers of the default VPC, which hold the services of the whole cluster. */
function nameOf(protocol: Protocol, affinity: boolean): string {
  return `cluster-${protocol.toLowerCase()}${affinity ? "-session" : ""}-loadbalancer`;
}

/** Makes them, without any service, and puts them on these switches (pkg/controller/init.go). */
export function createBalancers(switches: readonly string[]): readonly NbCommand[] {
  const plain = PROTOCOLS.map((protocol) => [
    ...[`name=cluster-${protocol}-loadbalancer`, `protocol=${protocol}`],
    // What is tracked of a UDP client ends with its endpoint.
    ...(protocol === "udp" ? ["options:ct_flush=true"] : []),
  ]);
  const session = PROTOCOLS.map((protocol) => [
    ...[`name=cluster-${protocol}-session-loadbalancer`, `protocol=${protocol}`, "selection_fields=ip_src"],
    `options:affinity_timeout=${AFFINITY_SECONDS}`,
  ]);
  return [...plain, ...session].flatMap(([name = "", ...columns]) => [
    ["create", "load_balancer", name, ...columns],
    ...switches.map((one) => ["ls-lb-add", one, name.slice("name=".length)]),
  ]);
}

/**
 * What kube-ovn's controller gives OVN for a service, whoever's its endpoints are: each ClusterIP and port with all
 * ready endpoints, without regard to traffic policies; nothing where there are none, so that such packets leave OVN
 * (pkg/controller/endpoint_slice.go, handleUpdateEndpointSlice).
 */
export function virtualAddresses(
  service: Service | undefined,
  slices: readonly EndpointSlice[],
): readonly VirtualAddress[] {
  if (service === undefined) return [];
  return service.clusterIPs.flatMap((address) =>
    service.ports.flatMap((port) => {
      const backends = slices
        .filter(({ family }) => (family === "IPv6") === isIPv6(address))
        .flatMap((slice) => readyIn(slice, port));
      const balancer = nameOf(port.protocol, service.affinitySeconds !== undefined);
      return backends.length === 0 ? [] : [{ balancer, at: socket(address, port.port), backends: backends.join(",") }];
    }),
  );
}

function readyIn({ ports, endpoints }: EndpointSlice, { name }: ServicePortSpec): readonly string[] {
  const found = ports.find((one) => one.name === name);
  if (found === undefined) return [];
  return endpoints.filter(({ ready }) => ready).map(({ address }) => socket(address, found.port));
}

/** The commands that lead from one state of a service to another. */
export function balancerCommands(
  before: readonly VirtualAddress[],
  after: readonly VirtualAddress[],
): readonly NbCommand[] {
  const same = (one: VirtualAddress) => (other: VirtualAddress) =>
    one.balancer === other.balancer && one.at === other.at;
  const gone = before.filter((one) => !after.some(same(one)));
  const changed = after.filter((one) => before.find(same(one))?.backends !== one.backends);
  return [
    ...gone.map(({ balancer, at }) => ["remove", "load_balancer", balancer, "vips", `"${at}"`]),
    ...changed.map(({ balancer, at, backends }) => ["set", "load_balancer", balancer, `vips:"${at}"="${backends}"`]),
  ];
}

function socket(address: string, port: number): string {
  return isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`;
}
