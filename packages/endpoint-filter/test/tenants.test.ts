/** What the author of one Service writes changes nothing of another namespace's. */

import { planOnce } from "@fairlead/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createEndpointFilter } from "../src/index.ts";

/** All of ours that decide about a Service. */
const ANNOTATIONS: Readonly<Record<string, readonly string[]>> = {
  "fairlead.dev/ownership": ["foreign", "ours", "mine", ""],
  "fairlead.dev/node-port-addresses": [
    "0.0.0.0/0",
    "10.201.0.10/32",
    "127.0.0.0/8",
    "primary",
    "::/0",
    "x,".repeat(99),
  ],
  "fairlead.dev/ipvs-scheduler": ["sh", "mh", "nothing", "rr\n-A -t 10.96.0.10:80"],
  "fairlead.dev/balance": ["client", "source", "random", "[]"],
  "fairlead.dev/fast-path": ["off", "on", "eth0"],
  "fairlead.dev/load-balancer-ip-mode": ["Proxy", "VIP", "vip"],
  "fairlead.dev/node-port-source-ranges": ["0.0.0.0/0", "10.0.0.0/8", "!"],
  "fairlead.dev/no-local-endpoint": ["reject", "drop", "Local"],
  "fairlead.dev/local-port": ["80", "30080", "0"],
  "service.kubernetes.io/topology-mode": ["Auto", "x"],
};

const VICTIM = { clusterIPs: ["10.96.0.10"], ports: [{ name: "", port: 80, nodePort: 30_080 }], type: "LoadBalancer" };
const ADDRESS = "203.0.113.50";

const service = (namespace: string, spec: object, more: object = {}, annotations: object = {}) => ({
  kind: "Service",
  metadata: { namespace, name: "web", annotations, creationTimestamp: "2026-01-02T00:00:00Z", ...more },
  spec,
});
const slice = (namespace: string, addresses: readonly string[]) => ({
  kind: "EndpointSlice",
  metadata: { namespace, name: "web-1", labels: { "kubernetes.io/service-name": "web" } },
  addressType: "IPv4",
  ports: [{ name: "", port: 8080 }],
  endpoints: addresses.map((address) => ({ addresses: [address], nodeName: "node-a" })),
});

const victim = [
  { ...service("shop", VICTIM), status: { loadBalancer: { ingress: [{ ip: ADDRESS }] } } },
  slice("shop", ["10.144.1.5", "10.144.2.6"]),
];

const filter = createEndpointFilter({
  excludeCIDRs: ["10.16.0.0/16"],
  mixedServices: "own-endpoints",
  excludedFrontends: "all",
  ownershipAnnotation: true,
});

function plannedOf(objects: readonly object[]) {
  const { plans } = planOnce([...objects, ...victim], {
    semantics: { localSourcesShortCut: true, localWithoutEndpoints: "drop", withoutEndpoints: "reject" },
    nodeName: "node-a",
    filter,
  });
  return Array.from(plans.IPv4.groups).filter(([id]) => id.startsWith("shop/web"));
}

const withoutTenant = plannedOf([]);

const tenant = fc.record({
  annotations: fc
    .array(
      fc
        .constantFrom(...Object.keys(ANNOTATIONS))
        .chain((name) => fc.tuple(fc.constant(name), fc.constantFrom(...(ANNOTATIONS[name] ?? [])))),
      { maxLength: 5 },
    )
    .map((entries) => Object.fromEntries(entries)),
  externalIPs: fc.subarray([ADDRESS, "10.96.0.10", "10.201.0.10", "0.0.0.0", "127.0.0.1"]),
  // An API server gives it, and none that another Service has.
  port: fc.constantFrom(80, 443, 30_080),
  older: fc.boolean(),
  affinity: fc.constantFrom("ClientIP", "None"),
  policies: fc.record({
    externalTrafficPolicy: fc.constantFrom("Cluster", "Local"),
    internalTrafficPolicy: fc.constantFrom("Cluster", "Local"),
  }),
  ranges: fc.subarray(["10.0.0.0/8", "::/0", "0.0.0.0/0"]),
  endpoints: fc.subarray(["10.144.1.5", "10.16.0.5", "10.144.9.9", "10.201.0.10"]),
});

test("annotations, external IPs, policies and endpoints of a tenant's Service leave another namespace's plan as it is", () => {
  expect(withoutTenant).toHaveLength(1);
  expect(JSON.stringify(withoutTenant[0]?.[1], replacer)).toContain(ADDRESS);
  fc.assert(
    fc.property(tenant, ({ annotations, externalIPs, port, older, affinity, policies, ranges, endpoints }) => {
      const spec = {
        clusterIPs: ["10.96.0.99"],
        type: "LoadBalancer",
        ports: [{ name: "", port, nodePort: 30_099 }],
        externalIPs,
        sessionAffinity: affinity,
        loadBalancerSourceRanges: ranges,
        ...policies,
      };
      const created = older ? { creationTimestamp: "2020-01-01T00:00:00Z" } : {};
      const theirs = [service("a-tenant", spec, created, annotations), slice("a-tenant", endpoints)];
      expect(plannedOf(theirs)).toEqual(withoutTenant);
    }),
  );
});

function replacer(_key: string, value: unknown): unknown {
  return value instanceof Map || value instanceof Set ? [...value] : value;
}
