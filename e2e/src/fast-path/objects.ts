import { IP_FAMILIES, type IPFamily } from "@fairlead/base";
import { endpointSlice, node, type RawObject, service } from "@fairlead/testkit";
import { stringify } from "yaml";
import { LINKS, NODE } from "./ground.ts";

/** What the agent in the guest serves, and how it is configured. */

/** Of the servers. */
export const TARGETS = { tcp: 8080, udp: 5353, sctp: 9090 } as const;
export type Protocol = keyof typeof TARGETS;

interface Served {
  /** The last part of its addresses. */
  readonly number: number;
  /** Of the services, by protocol. */
  readonly ports: Readonly<Record<Protocol, number>>;
  readonly nodePort?: number;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Each has ports of its own, so that a listing of connections says which one is meant. */
export const SERVICES = {
  web: { number: 10, ports: { tcp: 80, udp: 53, sctp: 90 }, nodePort: 30080 },
  excepted: { number: 11, ports: { tcp: 81, udp: 54, sctp: 91 }, annotations: { "fairlead.dev/fast-path": "off" } },
  moving: { number: 12, ports: { tcp: 82, udp: 55, sctp: 92 } },
  own: { number: 13, ports: { tcp: 83, udp: 56, sctp: 93 } },
} as const satisfies Record<string, Served>;
export type ServiceName = keyof typeof SERVICES;

export function clusterIP(name: ServiceName, family: IPFamily): string {
  const { number } = SERVICES[name];
  return { IPv4: `10.96.0.${number}`, IPv6: `fd00:10:96::${number}` }[family];
}

/** The node and its services; those with endpoints that change have none here. */
export function objectsText(): string {
  const addresses = IP_FAMILIES.map((family) => LINKS.outside.node[family]);
  const names: readonly ServiceName[] = ["web", "excepted", "moving", "own"];
  return text([
    node(NODE, { addresses }),
    ...names.map(serviceOf),
    ...slices("web", (family) => serversOf(family).slice(0, 2)),
    ...slices("excepted", (family) => serversOf(family).slice(0, 2)),
    // Its clients are its only endpoint.
    ...slices("own", (family) => LINKS.client.others[family]),
  ]);
}

/** One of the states of the service whose endpoints change: a server less than there are. */
export function movingText(without: number): string {
  return text(slices("moving", (family) => serversOf(family).filter((_, server) => server !== without)));
}

function serversOf(family: IPFamily): readonly string[] {
  return LINKS.server.others[family];
}

function serviceOf(name: ServiceName): RawObject {
  const { ports, nodePort, annotations }: Served = SERVICES[name];
  const protocols = Object.keys(ports) as Protocol[];
  return service(name, {
    clusterIPs: IP_FAMILIES.map((family) => clusterIP(name, family)),
    type: nodePort === undefined ? "ClusterIP" : "NodePort",
    ports: protocols.map((protocol) => ({
      name: protocol,
      protocol: upper(protocol),
      port: ports[protocol],
      targetPort: TARGETS[protocol],
      ...(nodePort !== undefined && { nodePort }),
    })),
    ...(annotations && { annotations }),
  });
}

function slices(name: ServiceName, addresses: (family: IPFamily) => readonly string[]): readonly RawObject[] {
  const ports = (Object.keys(TARGETS) as Protocol[]).map((protocol) => ({
    name: protocol,
    protocol: upper(protocol),
    port: TARGETS[protocol],
  }));
  return IP_FAMILIES.map((family) =>
    endpointSlice(`${name}-${family.toLowerCase()}`, {
      service: name,
      family,
      ports,
      endpoints: addresses(family).map((address) => ({ address, nodeName: NODE })),
    }),
  );
}

function upper(protocol: Protocol): "TCP" | "UDP" | "SCTP" {
  return protocol.toUpperCase() as "TCP" | "UDP" | "SCTP";
}

/** Of Fairlead and of kube-proxy. */
interface ProxyConfig {
  readonly mode?: "nftables" | "iptables";
  /** Absent: without the fast path. */
  readonly devices?: readonly string[] | "auto";
}

/** Fairlead's configuration. */
export function configText({ mode = "nftables", devices }: ProxyConfig): string {
  const fairlead = { apiVersion: "fairlead.dev/v1alpha1", kind: "FairleadConfiguration" };
  return text([proxyConfig(mode), { ...fairlead, ...(devices && { nftables: { fastPath: { devices } } }) }]);
}

/** The real kube-proxy's, in nftables mode. */
export function kubeProxyConfigText(kubeconfig: string): string {
  const conntrack = { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" };
  return text([
    { ...proxyConfig("nftables"), clientConnection: { kubeconfig, contentType: "application/json" }, conntrack },
  ]);
}

function proxyConfig(mode: "nftables" | "iptables") {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode,
    hostnameOverride: NODE,
    detectLocalMode: "ClusterCIDR",
    clusterCIDR: "10.144.0.0/16,fd00:10:144::/48",
    [mode]: { minSyncPeriod: "10ms", syncPeriod: "1s" },
  };
}

function text(objects: readonly object[]): string {
  return objects.map((object) => stringify(object)).join("---\n");
}
