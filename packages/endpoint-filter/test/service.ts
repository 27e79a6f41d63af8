import type { FilterEndpoint, Service } from "@fairlead/core";

export function service(annotations: Readonly<Record<string, string>> = {}): Service {
  return {
    namespace: "default",
    name: "web",
    clusterIPs: ["10.96.67.75"],
    ports: [{ name: "", protocol: "TCP", port: 80 }],
    externalIPs: [],
    loadBalancerIPs: [],
    loadBalancerSourceRanges: [],
    internalTrafficPolicy: "Cluster",
    externalTrafficPolicy: "Cluster",
    annotations,
  };
}

/** @param nodeName where they run; absent: nothing says so */
export function endpointsAt(addresses: readonly string[], nodeName?: string): readonly FilterEndpoint[] {
  return addresses.map((address) => ({ address, ...(nodeName !== undefined && { nodeName }) }));
}
