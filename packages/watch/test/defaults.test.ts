import { objectAt, valueAt } from "@fairlead/base";
import { expect, test } from "vitest";
import { setDefaults } from "../src/manifests/defaults.ts";

function defaulted(kind: string, raw: Record<string, unknown>): Record<string, unknown> {
  setDefaults(kind, raw);
  return raw;
}

const defaultedSpec = (spec: Record<string, unknown>) => objectAt(defaulted("Service", { spec }), "spec");

test("a Service as short as it can be written", () => {
  expect(
    defaulted("Service", { metadata: { name: "a" }, spec: { clusterIP: "10.96.0.9", ports: [{ port: 80 }] } }),
  ).toEqual({
    metadata: { name: "a", namespace: "default" },
    spec: {
      type: "ClusterIP",
      clusterIP: "10.96.0.9",
      clusterIPs: ["10.96.0.9"],
      ipFamilies: ["IPv4"],
      ipFamilyPolicy: "SingleStack",
      internalTrafficPolicy: "Cluster",
      sessionAffinity: "None",
      ports: [{ port: 80, protocol: "TCP", targetPort: 80 }],
    },
  });
});

test("what is written stays as it is", () => {
  const spec = {
    type: "LoadBalancer",
    clusterIP: "fd00:10:96::9",
    clusterIPs: ["fd00:10:96::9", "10.96.0.9"],
    ipFamilies: ["IPv6", "IPv4"],
    ipFamilyPolicy: "PreferDualStack",
    internalTrafficPolicy: "Local",
    externalTrafficPolicy: "Local",
    allocateLoadBalancerNodePorts: false,
    sessionAffinity: "ClientIP",
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 5 } },
    ports: [{ name: "dns", port: 53, protocol: "UDP", targetPort: "dns" }],
  };
  const status = { loadBalancer: { ingress: [{ ip: "192.0.2.7", ipMode: "Proxy" }, { hostname: "lb.example" }] } };
  const raw = { metadata: { name: "a", namespace: "b" }, spec, status };
  expect(defaulted("Service", structuredClone(raw))).toEqual(raw);
});

test("addresses: either way of writing them gives both, and the families", () => {
  const spec = { clusterIPs: ["10.96.0.9", "fd00:10:96::9"] };
  expect(defaultedSpec(spec)).toMatchObject({
    clusterIP: "10.96.0.9",
    clusterIPs: ["10.96.0.9", "fd00:10:96::9"],
    ipFamilies: ["IPv4", "IPv6"],
    ipFamilyPolicy: "RequireDualStack",
  });
  expect(defaultedSpec({ clusterIP: "None" })).not.toHaveProperty("ipFamilies");
});

test.each([
  [{ type: "NodePort" }, "Cluster"],
  [{ type: "LoadBalancer" }, "Cluster"],
  [{ externalIPs: ["192.0.2.1"] }, "Cluster"],
  [{ externalIPs: [] }, undefined],
  [{}, undefined],
])("externalTrafficPolicy of %j: %s", (spec, policy) => {
  expect(defaultedSpec({ ...spec })).toHaveProperty("internalTrafficPolicy", "Cluster");
  expect(valueAt(defaultedSpec({ ...spec }), "externalTrafficPolicy")).toBe(policy);
});

test("an ExternalName has no policies", () => {
  const spec = defaultedSpec({ type: "ExternalName", externalName: "example" });
  expect(spec).toEqual({ type: "ExternalName", externalName: "example", sessionAffinity: "None" });
});

test("ClientIP affinity lasts three hours; an ingress address is a VIP; nulls are absent", () => {
  const status = { loadBalancer: { ingress: [{ ip: "192.0.2.7" }, { hostname: "h" }] } };
  const spec = {
    type: null,
    sessionAffinity: "ClientIP",
    sessionAffinityConfig: null,
    ports: [{ port: 1, targetPort: 0 }],
  };
  expect(defaulted("Service", { metadata: { name: "a", namespace: "" }, spec, status })).toMatchObject({
    metadata: { namespace: "default" },
    spec: {
      type: "ClusterIP",
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } },
      ports: [{ port: 1, protocol: "TCP", targetPort: 1 }],
    },
    status: { loadBalancer: { ingress: [{ ip: "192.0.2.7", ipMode: "VIP" }, { hostname: "h" }] } },
  });
});

test("EndpointSlice ports get a name and a protocol; conditions stay unknown", () => {
  const endpoints = [{ addresses: ["10.144.0.1"] }, { addresses: ["10.144.0.2"], conditions: { ready: null } }];
  expect(
    defaulted("EndpointSlice", { metadata: {}, endpoints, ports: [{ port: 1 }, { name: "x", protocol: "SCTP" }] }),
  ).toEqual({
    metadata: { namespace: "default" },
    endpoints,
    ports: [
      { name: "", protocol: "TCP", port: 1 },
      { name: "x", protocol: "SCTP" },
    ],
  });
});

test("Node: one of podCIDR and podCIDRs gives the other; it has no namespace", () => {
  expect(defaulted("Node", { metadata: { name: "n" }, spec: { podCIDR: "10.144.0.0/24" } })).toEqual({
    metadata: { name: "n" },
    spec: { podCIDR: "10.144.0.0/24", podCIDRs: ["10.144.0.0/24"] },
  });
});

test.each([
  ["text", { spec: "x", status: 1 }],
  ["lists", { metadata: [], spec: [], status: { loadBalancer: { ingress: {} } } }],
  ["odd items", { spec: { ports: [null, 1, "x", []], clusterIPs: [1, null], externalIPs: "x" } }],
])("%s in place of objects: left alone", (_what, raw) => {
  for (const kind of ["Service", "EndpointSlice", "Node", "ServiceCIDR"]) {
    expect(() => setDefaults(kind, structuredClone(raw))).not.toThrow();
  }
});
