import { IP_FAMILIES } from "@fairlead/base";
import { endpointSlice, node, type RawObject, type SlicePortFields, service } from "@fairlead/testkit";
import { stringify } from "yaml";
import { type ByFamily, ENDPOINTS, NODE, UPLINKS } from "./ground.ts";

/** What the proxies in the guest serve, and how they are configured. */

/** The service proxy name of the second instance. */
const NAME = "storage";

interface Served {
  readonly clusterIP: ByFamily;
  readonly loadBalancer?: ByFamily;
  readonly nodePort: number;
  readonly port: number;
  /** Of the endpoints. */
  readonly targetPort: number;
  readonly fields?: Partial<Parameters<typeof service>[1]>;
}

export const SERVICES = {
  web: {
    clusterIP: { IPv4: "10.96.0.10", IPv6: "fd00:96::10" },
    loadBalancer: { IPv4: "192.0.2.10", IPv6: "fd00:192::10" },
    nodePort: 30_080,
    port: 80,
    targetPort: 8_080,
  },
  kept: {
    clusterIP: { IPv4: "10.96.0.11", IPv6: "fd00:96::11" },
    loadBalancer: { IPv4: "192.0.2.11", IPv6: "fd00:192::11" },
    nodePort: 30_081,
    port: 80,
    targetPort: 8_080,
    fields: { externalTrafficPolicy: "Local" },
  },
  storage: {
    clusterIP: { IPv4: "10.96.0.12", IPv6: "fd00:96::12" },
    nodePort: 30_082,
    port: 80,
    targetPort: 8_081,
    fields: {
      labels: { "service.kubernetes.io/service-proxy-name": NAME },
      annotations: { "k8s.v1.cni.cncf.io/service-network": NAME },
    },
  },
} as const satisfies Record<string, Served>;
type ServiceName = keyof typeof SERVICES;

export const PROTOCOLS = ["tcp", "udp"] as const;
export type Protocol = (typeof PROTOCOLS)[number];

/** All but the second instance's slices. Kubernetes' own controller has written the others, of first interfaces. */
export function objectsText(): string {
  const names = Object.keys(SERVICES) as ServiceName[];
  return text([
    node(NODE, { addresses: IP_FAMILIES.map((family) => UPLINKS.first.node[family]) }),
    ...names.map(serviceOf),
    ...names.flatMap((name) => slices(name, "eth0", [0, 1])),
  ]);
}

/** Slices of second interfaces, of these pods. */
export function storageText(pods: readonly number[]): string {
  const label = { "endpointslice.kubernetes.io/managed-by": "fairlead-slices.fairlead.dev" };
  return text(
    slices("storage", "net1", pods).map((slice) => {
      const { metadata } = slice;
      return { ...slice, metadata: { ...metadata, labels: { ...metadata.labels, ...label } } };
    }),
  );
}

export function configText(fairlead: object): string {
  return text([PROXY, { apiVersion: "fairlead.dev/v1alpha1", kind: "FairleadConfiguration", ...fairlead }]);
}

export function kubeProxyConfigText(kubeconfig: string): string {
  const conntrack = { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" };
  return text([{ ...PROXY, clientConnection: { kubeconfig, contentType: "application/json" }, conntrack }]);
}

const PROXY = {
  apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
  kind: "KubeProxyConfiguration",
  mode: "ipvs",
  hostnameOverride: NODE,
  clusterCIDR: "10.144.0.0/16,fd00:144::/32",
  ipvs: { minSyncPeriod: "10ms" },
};

function serviceOf(name: ServiceName): RawObject {
  const { clusterIP, loadBalancer, nodePort, port, targetPort, fields }: Served = SERVICES[name];
  const protocols = ["TCP", "UDP"] as const;
  return service(name, {
    clusterIPs: IP_FAMILIES.map((family) => clusterIP[family]),
    type: loadBalancer === undefined ? "NodePort" : "LoadBalancer",
    ...(loadBalancer && { ingress: IP_FAMILIES.map((family) => ({ ip: loadBalancer[family] })) }),
    ports: protocols.map((protocol) => ({ name: protocol.toLowerCase(), protocol, port, targetPort, nodePort })),
    ...fields,
  });
}

function slices(name: ServiceName, device: keyof typeof ENDPOINTS, pods: readonly number[]): readonly RawObject[] {
  const { targetPort: port } = SERVICES[name];
  const ports: readonly SlicePortFields[] = [
    { name: "tcp", protocol: "TCP", port },
    { name: "udp", protocol: "UDP", port },
  ];
  return IP_FAMILIES.map((family) =>
    endpointSlice(`${name}-${device}-${family.toLowerCase()}`, {
      service: name,
      family,
      ports,
      endpoints: ENDPOINTS[device][family]
        .filter((_, pod) => pods.includes(pod))
        .map((address) => ({ address, nodeName: NODE })),
    }),
  );
}

function text(objects: readonly object[]): string {
  return objects.map((object) => stringify(object)).join("---\n");
}
