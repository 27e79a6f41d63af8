import type { IPFamily } from "@fairlead/core";

interface EndpointAt {
  readonly namespace: string;
  readonly service: string;
  readonly family: IPFamily;
  readonly address: string;
}

/** An EndpointSlice that nobody keeps: one ready endpoint at port 80, whether somebody is there or not. */
export function endpointAt({ namespace, service, family, address }: EndpointAt) {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: `${service}-by-hand`, namespace, labels: { "kubernetes.io/service-name": service } },
    addressType: family,
    ports: [{ port: 80, protocol: "TCP" }],
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
  };
}
