import { IP_FAMILIES } from "@fairlead/base";
import { endpointSlice, node, type RawObject, type SlicePortFields, service } from "@fairlead/testkit";
import { IPVS_GUEST } from "../cost/ipvs.ts";
import { configText, manifestText, NODE, type NodeGuest } from "../qemu/guest.ts";
import { type ByFamily, ENDPOINTS, networkLines, PODS, UPLINKS } from "./ground.ts";

/** The guest: what the proxies in it serve, and how they are configured. */

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

/** Pods answer on one interface only. There are configurations `plain` and `reply-via`, and states of `storage`. */
export function guest(): NodeGuest {
  const onPods = (protocol: Protocol, port: number, device: keyof typeof ENDPOINTS) => {
    const { IPv4, IPv6 } = ENDPOINTS[device];
    return { namespace: PODS, protocol, port, addresses: [...IPv4, ...IPv6] };
  };
  return {
    modules: IPVS_GUEST.modules ?? [],
    programs: ["ipset", "ipvsadm"],
    functions: new URL("functions.sh", import.meta.url),
    network: networkLines(),
    servers: PROTOCOLS.flatMap((protocol) => [
      onPods(protocol, SERVICES.web.targetPort, "eth0"),
      onPods(protocol, SERVICES.storage.targetPort, "net1"),
    ]),
    files: {
      objects: objectsText(),
      "storage-both": storageText([0, 1]),
      "storage-one": storageText([0]),
      "storage-other": storageText([1]),
      plain: configText(PROXY),
      "reply-via": configText(PROXY, { replyVia: "auto" }),
    },
    kubeProxy: PROXY,
  };
}

/** All but the second instance's slices. Kubernetes' own controller has written the others, of first interfaces. */
function objectsText(): string {
  const names = Object.keys(SERVICES) as ServiceName[];
  return manifestText([
    node(NODE, { addresses: IP_FAMILIES.map((family) => UPLINKS.first.node[family]) }),
    ...names.map(serviceOf),
    ...names.flatMap((name) => slices(name, "eth0", [0, 1])),
  ]);
}

/** Slices of second interfaces, of these pods. */
function storageText(pods: readonly number[]): string {
  const label = { "endpointslice.kubernetes.io/managed-by": "fairlead-slices.fairlead.dev" };
  return manifestText(
    slices("storage", "net1", pods).map((slice) => {
      const { metadata } = slice;
      return { ...slice, metadata: { ...metadata, labels: { ...metadata.labels, ...label } } };
    }),
  );
}

const PROXY = {
  mode: "ipvs",
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
