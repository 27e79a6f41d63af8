import type { ClusterState } from "../src/cluster-state.ts";
import { decodeEndpointSlice } from "../src/decode/endpoint-slice.ts";
import { createIntern } from "../src/decode/fields.ts";
import { decodeService } from "../src/decode/service.ts";

/** The yardstick's objects as JSON text, one list of each kind, as an API server would send them. */
export function clusterJSON(services: number, endpoints: number): { services: string; slices: string } {
  const index = Array.from({ length: services }, (_, i) => i);
  return {
    services: JSON.stringify(index.map((i) => rawService(i))),
    slices: JSON.stringify(index.map((i) => rawSlice(i, endpoints))),
  };
}

function rawService(i: number): unknown {
  return {
    metadata: { name: `service-${i}`, namespace: `team-${i % 100}`, resourceVersion: `${i}`, uid: `uid-${i}` },
    spec: {
      type: "ClusterIP",
      clusterIP: serviceIP(i),
      clusterIPs: [serviceIP(i)],
      ipFamilies: ["IPv4"],
      ports: [{ name: "http", protocol: "TCP", port: 80, targetPort: 8080 }],
      internalTrafficPolicy: "Cluster",
      sessionAffinity: "None",
    },
    status: { loadBalancer: {} },
  };
}

function rawSlice(i: number, endpoints: number): unknown {
  return {
    metadata: {
      name: `service-${i}-abcde`,
      namespace: `team-${i % 100}`,
      labels: { "kubernetes.io/service-name": `service-${i}` },
      resourceVersion: `${i}`,
    },
    addressType: "IPv4",
    ports: [{ name: "http", protocol: "TCP", port: 8080 }],
    endpoints: Array.from({ length: endpoints }, (_, e) => ({
      addresses: [podIP(i * endpoints + e)],
      conditions: { ready: true, serving: true, terminating: false },
      nodeName: `node-with-a-longer-name-${(i + e) % 500}`,
      zone: "zone-a",
      targetRef: { kind: "Pod", name: `service-${i}-${e}`, namespace: `team-${i % 100}` },
    })),
  };
}

function serviceIP(i: number): string {
  return `10.${96 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`;
}

function podIP(n: number): string {
  return `10.${144 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`;
}

/** Decodes lists into a state, as the agent does. */
export function decodeInto(state: ClusterState, services: readonly unknown[], slices: readonly unknown[]): void {
  const intern = createIntern();
  for (const raw of services) {
    const { object } = decodeService(raw, intern);
    if (object !== undefined) state.upsertService(object);
  }
  for (const raw of slices) {
    const { object } = decodeEndpointSlice(raw, intern);
    if (object !== undefined) state.upsertSlice(object);
  }
}
