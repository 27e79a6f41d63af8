import { type RawObject, SLICES_MANAGER } from "@fairlead/base";
import type { LightApiServer } from "@fairlead/testkit/api-server";
import { NETWORK_STATUS, SERVICE_NETWORK } from "../../src/slices/decode.ts";

export const AT = {
  services: "/api/v1/services",
  pods: "/api/v1/pods",
  slices: "/apis/discovery.k8s.io/v1/endpointslices",
  events: "/api/v1/events",
  leases: "/apis/coordination.k8s.io/v1/leases",
  networks: "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions",
} as const;

/** A Service for endpoints on network lab/storage. */
export function networkService(spec: RawObject = {}): RawObject {
  return {
    metadata: {
      namespace: "lab",
      name: "web",
      uid: "uid-web",
      labels: { "service.kubernetes.io/service-proxy-name": "storage" },
      annotations: { [SERVICE_NETWORK]: "storage" },
    },
    spec: { clusterIP: "10.96.0.10", ipFamilies: ["IPv4"], selector: { app: "web" }, ports: [{ port: 80 }], ...spec },
  };
}

/** A pod with two interfaces, with its status as Multus writes it. */
export function networkPod(name: string, ip: string, ready = true): RawObject {
  const networks = [
    { name: "cbr0", interface: "eth0", ips: ["10.144.1.9"], default: true, dns: {} },
    { name: "lab/storage", interface: "net1", ips: [ip], mac: "02:00:00:00:00:02", dns: {} },
  ];
  return {
    metadata: {
      namespace: "lab",
      name,
      uid: `uid-${name}`,
      labels: { app: "web" },
      annotations: { [NETWORK_STATUS]: JSON.stringify(networks) },
    },
    spec: { nodeName: "node-a", containers: [] },
    status: {
      phase: "Running",
      podIPs: [{ ip: "10.144.1.9" }],
      conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
    },
  };
}

/** Addresses in the slices that the controller wrote, in order. */
export function writtenAddresses({ store }: LightApiServer): readonly string[] {
  return store
    .list(AT.slices)
    .filter((slice) => managerOf(slice) === SLICES_MANAGER)
    .flatMap((slice) => slice["endpoints"] as { addresses: string[]; conditions: { ready: boolean } }[])
    .map(({ addresses: [address = ""], conditions: { ready } }) => `${address}${ready ? "" : " not ready"}`)
    .sort();
}

function managerOf({ metadata }: { readonly metadata?: unknown }): string | undefined {
  const { labels = {} } = metadata as { readonly labels?: Readonly<Record<string, string>> };
  return labels["endpointslice.kubernetes.io/managed-by"];
}

/** Writes of EndpointSlices that a server was asked for. */
export function sliceWrites({ requests }: LightApiServer): readonly string[] {
  return requests
    .filter(({ method, path }) => method !== "GET" && path.includes("/endpointslices"))
    .map(({ method }) => method);
}
