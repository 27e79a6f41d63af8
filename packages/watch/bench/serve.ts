import { LightApiServer } from "@fairlead/testkit/api-server";

/** Serves 10,000 EndpointSlices of 10 endpoints, as big as real ones with managedFields, until it is ended. */

const api = new LightApiServer();
for (let i = 0; i < 10_000; i++) api.store.put("/apis/discovery.k8s.io/v1/endpointslices", slice(i));
console.log(await api.start());

function slice(i: number) {
  const name = `svc-${i}`;
  const fields = {
    "f:addressType": {},
    "f:endpoints": {},
    "f:metadata": { "f:generateName": {}, "f:labels": {} },
    "f:ports": {},
  };
  return {
    metadata: {
      name: `${name}-x7k2p`,
      generateName: `${name}-`,
      namespace: "default",
      uid: uid(i),
      creationTimestamp: "2026-01-01T00:00:00Z",
      labels: {
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        "kubernetes.io/service-name": name,
      },
      ownerReferences: [{ apiVersion: "v1", kind: "Service", name, uid: uid(i), controller: true }],
      managedFields: [
        { manager: "kube-controller-manager", operation: "Update", fieldsType: "FieldsV1", fieldsV1: fields },
      ],
    },
    addressType: "IPv4",
    endpoints: Array.from({ length: 10 }, (_, k) => endpoint(i * 10 + k)),
    ports: [{ name: "http", port: 8080, protocol: "TCP" }],
  };
}

function endpoint(n: number) {
  return {
    addresses: [`10.${144 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`],
    conditions: { ready: true, serving: true, terminating: false },
    nodeName: `node-${n % 500}`,
    targetRef: { kind: "Pod", namespace: "default", name: `pod-${n}`, uid: uid(n) },
    zone: `z${n % 3}`,
  };
}

function uid(n: number): string {
  return `3f0c6bcd-0b5d-4c8e-8a2d-${String(n).padStart(12, "0")}`;
}
