import { expect, test } from "vitest";
import { addressPath, serviceObject, sliceObject, storedServices } from "../src/cluster/objects.ts";

const ADDED = { uid: "0", resourceVersion: "7", creationTimestamp: "2030-01-01T00:00:00Z", managedFields: [{}] };

/** As an API server answers, with what it adds. */
function samples() {
  const service = serviceObject(0);
  const slice = sliceObject(0, 2);
  const spec = { clusterIPs: ["10.100.0.1"], type: "ClusterIP", ...(service["spec"] as object) };
  return {
    service: { ...service, metadata: { ...service.metadata, ...ADDED }, spec, status: { loadBalancer: {} } },
    slice: { ...slice, metadata: { ...slice.metadata, ...ADDED, generation: 1 } },
    address: {
      apiVersion: "networking.k8s.io/v1",
      kind: "IPAddress",
      metadata: { name: "10.100.0.1", ...ADDED },
      spec: { parentRef: { group: "", resource: "services", namespace: "bench", name: "svc-0" } },
    },
  };
}

test("services are stored as the sample is, each with its own names, addresses and endpoints", () => {
  const stored = new Map(storedServices(samples(), { services: 3, endpoints: 2 }, 1));
  expect([...stored.keys()]).toEqual(
    [1, 2].flatMap((index) => [
      `/registry/endpointslices/bench/svc-${index}-0`,
      `/registry/ipaddresses/10.100.0.${index + 1}`,
      `/registry/services/specs/bench/svc-${index}`,
    ]),
  );
  expect(stored.get("/registry/services/specs/bench/svc-1")).toMatchObject({
    metadata: { name: "svc-1", namespace: "bench", creationTimestamp: ADDED.creationTimestamp, managedFields: [{}] },
    spec: { clusterIP: "10.100.0.2", clusterIPs: ["10.100.0.2"], type: "ClusterIP", ports: [{ port: 80 }] },
    status: { loadBalancer: {} },
  });
  const slice = stored.get("/registry/endpointslices/bench/svc-1-0");
  expect(slice).toMatchObject({ metadata: { labels: { "kubernetes.io/service-name": "svc-1" }, generation: 1 } });
  expect(slice?.["endpoints"]).toEqual(sliceObject(1, 2)["endpoints"]);
  expect(stored.get("/registry/ipaddresses/10.100.0.2")).toMatchObject({ spec: { parentRef: { name: "svc-1" } } });
  expect(addressPath(1)).toMatch(/\/10\.100\.0\.2$/);
  for (const { metadata } of stored.values()) expect(metadata["resourceVersion"]).toBeUndefined();
  expect(new Set(Array.from(stored.values(), ({ metadata }) => metadata["uid"])).size).toBe(stored.size);
});

test("a large service has as many slices as Kubernetes would give it", () => {
  const stored = [...storedServices(samples(), { services: 2, endpoints: 250 }, 1)];
  const slices = stored.filter(([key]) => key.startsWith("/registry/endpointslices/"));
  expect(slices.map(([key]) => key.split("/").at(-1))).toEqual(["svc-1-0", "svc-1-1", "svc-1-2"]);
  const endpoints = slices.flatMap(([, slice]) => slice["endpoints"] as { readonly addresses: readonly string[] }[]);
  expect(slices.map(([, slice]) => (slice["endpoints"] as unknown[]).length)).toEqual([100, 100, 50]);
  expect(new Set(endpoints.map(({ addresses }) => addresses[0])).size).toBe(250);
});
