import type { RawObject } from "@fairlead/base";
import { describe, expect, test } from "vitest";
import type { Key } from "../../src/controller/requests.ts";
import {
  backend,
  conditionsOf,
  GatewayCluster,
  gateway,
  gatewayClass,
  grant,
  listener,
  type Made,
  NOW,
  namespace,
  type RouteFields,
  route,
  slice,
} from "../support/gateways.ts";

const TCP = listener("tcp", 9000);
const SERVICE: Key = "apps/gw-fairlead";

/** A Gateway with a TCP listener, a route and a backend, and whatever else. */
async function settled(...more: readonly Made[]): Promise<GatewayCluster> {
  const all = [gatewayClass(), gateway("gw", [TCP]), backend("web"), slice("web", ["10.0.0.1", "10.0.0.2!"]), ...more];
  const cluster = new GatewayCluster(...all);
  await cluster.settle();
  return cluster;
}

function statusOf(cluster: GatewayCluster, name = "gw"): RawObject {
  return (cluster.get("Gateway", `apps/${name}`)?.["status"] ?? {}) as RawObject;
}

function listenersOf(cluster: GatewayCluster) {
  return (statusOf(cluster)["listeners"] ?? []) as (RawObject & { name: string; attachedRoutes: number })[];
}

function parentsOf(cluster: GatewayCluster, name: string, kind: "TCPRoute" | "UDPRoute" = "TCPRoute", of = "apps") {
  const { parents = [] } = (cluster.get(kind, `${of}/${name}`)?.["status"] ?? {}) as { parents?: RawObject[] };
  return parents;
}

/** Gives the Gateway's Service addresses, as a load balancer does. */
async function giveAddress(cluster: GatewayCluster, ...addresses: readonly string[]): Promise<void> {
  const status = { loadBalancer: { ingress: addresses.map((ip) => ({ ip })) } };
  cluster.put({ kind: "Service", key: SERVICE, raw: { ...cluster.get("Service", SERVICE), status } });
  await cluster.settle();
}

describe("a Gateway's Service", () => {
  test("has a port for each listener, no selector, and the Gateway as its owner", async () => {
    const listeners = [TCP, listener("dns", 53, "UDP"), listener("a.name.with.dots", 9001)];
    const cluster = await settled(gateway("gw", listeners));
    expect(cluster.get("Service", SERVICE)).toMatchObject({
      metadata: {
        labels: {
          "gateway.networking.k8s.io/gateway-name": "gw",
          "gateway.networking.k8s.io/gateway-class-name": "fairlead",
          "app.kubernetes.io/managed-by": "gateways.fairlead.dev",
        },
        ownerReferences: [{ kind: "Gateway", name: "gw", uid: "uid-Gateway-apps-gw", controller: true }],
      },
      spec: {
        type: "LoadBalancer",
        ipFamilyPolicy: "PreferDualStack",
        ports: [
          { name: "tcp", port: 9000, protocol: "TCP" },
          { name: "dns", port: 53, protocol: "UDP" },
          { name: expect.stringMatching(/^a-name-with-dots-[0-9a-f]{10}$/), port: 9001, protocol: "TCP" },
        ],
      },
    });
    expect(cluster.get("Service", SERVICE)?.["spec"]).not.toHaveProperty("selector");
  });

  test("gets labels and annotations of spec.infrastructure, and loses those that are taken out of it; others' stay", async () => {
    const infrastructure = { labels: { team: "a" }, annotations: { "example.org/pool": "blue", "example.org/x": "1" } };
    const cluster = await settled(gateway("gw", [TCP], { infrastructure }));
    const { metadata, ...rest } = cluster.get("Service", SERVICE) as { metadata: { annotations: object } };
    const written = { ...metadata, annotations: { ...metadata.annotations, "example.org/by-another": "kept" } };
    cluster.put({ kind: "Service", key: SERVICE, raw: { ...rest, metadata: written } });
    cluster.put(gateway("gw", [TCP], { infrastructure: { annotations: { "example.org/x": "2" } } }, { generation: 2 }));
    await cluster.settle();
    const after = cluster.get("Service", SERVICE)?.["metadata"] as { labels: object; annotations: object };
    expect(after.labels).not.toHaveProperty("team");
    expect(after.annotations).toEqual({
      "example.org/x": "2",
      "example.org/by-another": "kept",
      "fairlead.dev/gateway-annotations": "example.org/x",
    });
  });

  test("names the route that serves each port, as long as one does, in a bounded text", async () => {
    const routes = (of: GatewayCluster) =>
      Object(of.get("Service", SERVICE)?.["metadata"]).annotations["fairlead.dev/gateway-routes"];
    const listeners = [TCP, listener("dns", 53, "UDP")];
    const cluster = await settled(gateway("gw", listeners), route("young", { created: "2026-01-02T00:00:00Z" }));
    expect(routes(cluster)).toBe("tcp=apps/young");
    cluster.put(route("old", { created: "2026-01-01T00:00:00Z" }), route("u", { kind: "UDPRoute" }));
    await cluster.settle();
    expect(routes(cluster)).toBe("tcp=apps/old,dns=apps/u");
    for (const name of ["old", "young"] as const) cluster.delete("TCPRoute", `apps/${name}`);
    await cluster.settle();
    expect(routes(cluster)).toBe("dns=apps/u");
    cluster.delete("UDPRoute", "apps/u");
    await cluster.settle();
    expect(routes(cluster)).toBeUndefined();
    const many = Array.from({ length: 64 }, (_, at) => listener(`l${at}`, 9_000 + at));
    const named = await settled(gateway("gw", many), route("r".repeat(253)));
    expect(routes(named).length).toBeGreaterThan(3_500);
    expect(routes(named).length).toBeLessThan(4_097);
  });

  test("keeps node ports, cluster IPs and policies when listeners come and go", async () => {
    const cluster = await settled();
    const { spec, ...rest } = cluster.get("Service", SERVICE) as { spec: { ports: object[] } };
    const ports = spec.ports.map((port) => ({ ...port, nodePort: 30_001 }));
    const given = { ...spec, ports, clusterIP: "10.96.0.7", externalTrafficPolicy: "Local" };
    cluster.put({ kind: "Service", key: SERVICE, raw: { ...rest, spec: given } });
    cluster.put(gateway("gw", [listener("other", 9001), TCP], {}, { generation: 2 }));
    await cluster.settle();
    expect(cluster.get("Service", SERVICE)?.["spec"]).toMatchObject({
      clusterIP: "10.96.0.7",
      externalTrafficPolicy: "Local",
      ports: [
        { name: "other", port: 9001 },
        { name: "tcp", port: 9000, nodePort: 30_001 },
      ],
    });
  });

  test.each([
    ["one", ["192.0.2.7"], { ipFamilies: ["IPv4"], loadBalancerIP: "192.0.2.7" }, undefined],
    [
      "two of both families",
      ["192.0.2.7", "2001:db8::7"],
      { ipFamilyPolicy: "PreferDualStack" },
      "192.0.2.7,2001:db8::7",
    ],
    ["any", [""], { ipFamilyPolicy: "PreferDualStack" }, undefined],
  ])("asks a load balancer for %s address", async (_what, values, spec, annotation) => {
    const cluster = await settled(gateway("gw", [TCP], { addresses: values.map((value) => ({ value })) }));
    const service = cluster.get("Service", SERVICE);
    expect(service?.["spec"]).toMatchObject(spec);
    // MetalLB takes no Service with both.
    expect("loadBalancerIP" in Object(service?.["spec"])).toBe(values.length === 1 && values[0] !== "");
    const { annotations } = Object(service?.["metadata"]) as { annotations: RawObject };
    expect(annotations["metallb.io/loadBalancerIPs"]).toBe(annotation);
  });

  test("of another owner with its name is not changed, and the Gateway says so", async () => {
    const cluster = new GatewayCluster(gatewayClass(), gateway("gw", [TCP]), backend("gw-fairlead"));
    await cluster.settle();
    expect(conditionsOf(statusOf(cluster))).toEqual({ Accepted: "True Accepted", Programmed: "False Invalid" });
    expect(cluster.writes.filter((write) => write.includes("services"))).toEqual([]);
    expect(cluster.problems).toEqual([expect.stringContaining("Service gw-fairlead is not this Gateway's")]);
    cluster.delete("Service", SERVICE);
    await cluster.settle();
    expect(conditionsOf(statusOf(cluster))["Programmed"]).toBe("False AddressNotAssigned");
  });

  test("goes when no listener is left that could be served, or another controller has the Gateway", async () => {
    const cluster = await settled();
    cluster.put(gateway("gw", [listener("web", 80, "HTTP")], {}, { generation: 2 }));
    expect(await cluster.settle()).toContain(`DELETE namespaces/apps/services/gw-fairlead`);
    const other = await settled();
    other.put(gatewayClass("theirs", "example.org/theirs"));
    other.put(gateway("gw", [TCP], { gatewayClassName: "theirs" }, { generation: 2 }));
    expect(await other.settle()).toContain(`DELETE namespaces/apps/services/gw-fairlead`);
  });

  test("that the API server refuses is a condition, and one Event however often it is tried", async () => {
    const cluster = new GatewayCluster(gatewayClass(), gateway("gw", [TCP]));
    cluster.refuse = (method) =>
      method === "POST" ? { status: 422, body: '{"message":"spec.ports: too many"}' } : undefined;
    for (let attempt = 0; attempt < 3; attempt += 1) {
      cluster.state.allAgain();
      await expect(cluster.settle()).rejects.toThrow("spec.ports: too many");
    }
    expect(conditionsOf(statusOf(cluster))["Programmed"]).toBe("False Invalid");
    expect(cluster.problems).toEqual(["Gateway apps/gw: Invalid: spec.ports: too many"]);
    cluster.refuse = () => undefined;
    cluster.state.allAgain();
    await cluster.settle();
    expect(conditionsOf(statusOf(cluster))["Programmed"]).toBe("False AddressNotAssigned");
  });
});

describe("a Gateway's status", () => {
  test("has the load balancer's addresses, and is programmed with the first of them", async () => {
    const cluster = await settled();
    expect(conditionsOf(statusOf(cluster))).toEqual({
      Accepted: "True Accepted",
      Programmed: "False AddressNotAssigned",
    });
    await giveAddress(cluster, "192.0.2.1", "2001:db8::1");
    expect(statusOf(cluster)["addresses"]).toEqual([
      { type: "IPAddress", value: "192.0.2.1" },
      { type: "IPAddress", value: "2001:db8::1" },
    ]);
    expect(conditionsOf(statusOf(cluster))["Programmed"]).toBe("True Programmed");
    expect(listenersOf(cluster).map(conditionsOf)).toEqual([
      { Accepted: "True Accepted", ResolvedRefs: "True ResolvedRefs", Programmed: "True Programmed" },
    ]);
  });

  test("with node ports has the Service's own addresses, and names the port of each listener", async () => {
    const cluster = await settled(
      gatewayClass("fairlead", undefined, {}, { annotations: { "fairlead.dev/addresses": "node-ports" } }),
    );
    const { spec, ...rest } = cluster.get("Service", SERVICE) as { spec: { ports: object[] } };
    const ports = spec.ports.map((port) => ({ ...port, nodePort: 30_001 }));
    cluster.put({
      kind: "Service",
      key: SERVICE,
      raw: { ...rest, spec: { ...spec, ports, clusterIPs: ["10.96.0.7"] } },
    });
    await cluster.settle();
    expect(spec).toMatchObject({ type: "NodePort" });
    expect(statusOf(cluster)["addresses"]).toEqual([{ type: "IPAddress", value: "10.96.0.7" }]);
    expect(JSON.stringify(listenersOf(cluster))).toContain("at node port 30001");
  });

  test.each([
    [
      "an address that no load balancer gave",
      { addresses: [{ value: "192.0.2.9" }] },
      "True Accepted",
      "False AddressNotUsable",
    ],
    [
      "a type of address",
      { addresses: [{ type: "Hostname", value: "a.example" }] },
      "False UnsupportedAddress",
      "False Invalid",
    ],
    ["a text as an address", { addresses: [{ value: "192.0.2" }] }, "False UnsupportedAddress", "False Invalid"],
    [
      "parameters",
      { infrastructure: { parametersRef: { group: "a.b", kind: "C", name: "d" } } },
      "False InvalidParameters",
      "False Invalid",
    ],
  ])("with %s says so", async (_what, spec, accepted, programmed) => {
    const cluster = await settled(gateway("gw", [TCP], spec));
    expect(conditionsOf(statusOf(cluster))).toEqual({ Accepted: accepted, Programmed: programmed });
    expect(cluster.problems).toHaveLength(accepted.startsWith("True") ? 0 : 2);
  });

  test.each([
    ["HTTP", listener("x", 80, "HTTP"), "False UnsupportedProtocol", "True ResolvedRefs"],
    ["TLS", listener("x", 443, "TLS"), "False UnsupportedProtocol", "True ResolvedRefs"],
    [
      "one that does not exist",
      listener("x", 80, "INVALID", { kinds: [{ kind: "Odd" }] }),
      "False UnsupportedProtocol",
      "False InvalidRouteKinds",
    ],
    [
      "a kind that it cannot take",
      listener("x", 80, "TCP", { kinds: [{ kind: "HTTPRoute" }] }),
      "True Accepted",
      "False InvalidRouteKinds",
    ],
  ])("of a listener with %s says so, and the others are served", async (_what, odd, accepted, refs) => {
    const cluster = await settled(gateway("gw", [TCP, odd]), route("r"));
    const reason = accepted.startsWith("True") ? "Accepted" : "ListenersNotValid";
    expect(conditionsOf(statusOf(cluster))["Accepted"]).toBe(`True ${reason}`);
    expect(listenersOf(cluster).map((one) => [one["supportedKinds"], one.attachedRoutes])).toEqual([
      [[{ group: "gateway.networking.k8s.io", kind: "TCPRoute" }], 1],
      [[], 0],
    ]);
    expect(conditionsOf(listenersOf(cluster)[1])).toMatchObject({ Accepted: accepted, ResolvedRefs: refs });
    expect(cluster.mirrored()).toHaveLength(1);
  });

  test("of two listeners with one port and protocol has neither; a third is served", async () => {
    const cluster = await settled(gateway("gw", [listener("a", 80), listener("b", 80), listener("c", 80, "UDP")]));
    expect(listenersOf(cluster).map((one) => conditionsOf(one)["Conflicted"])).toEqual([
      "True ProtocolConflict",
      "True ProtocolConflict",
      undefined,
    ]);
    expect(cluster.get("Service", SERVICE)?.["spec"]).toMatchObject({ ports: [{ name: "c", protocol: "UDP" }] });
    cluster.put(gateway("gw", [listener("a", 80)], {}, { generation: 2 }));
    await cluster.settle();
    expect(conditionsOf(listenersOf(cluster)[0])).not.toHaveProperty("Conflicted");
  });

  test("keeps conditions of others in their places, and the time of what did not change", async () => {
    const foreign = {
      type: "example.org/Odd",
      status: "True",
      observedGeneration: 1,
      lastTransitionTime: NOW,
      reason: "R",
      message: "",
    };
    const old = {
      type: "Accepted",
      status: "True",
      observedGeneration: 1,
      lastTransitionTime: "2020-01-01T00:00:00Z",
      reason: "Accepted",
      message: "",
    };
    const pending = {
      type: "Programmed",
      status: "Unknown",
      lastTransitionTime: "1970-01-01T00:00:00Z",
      reason: "Pending",
      message: "",
    };
    const made = gateway("gw", [TCP], {}, { generation: 4 });
    const cluster = await settled({ ...made, raw: { ...made.raw, status: { conditions: [foreign, old, pending] } } });
    expect(statusOf(cluster)["conditions"]).toMatchObject([
      foreign,
      { type: "Accepted", observedGeneration: 4, lastTransitionTime: "2020-01-01T00:00:00Z" },
      { type: "Programmed", status: "False", observedGeneration: 4, lastTransitionTime: NOW },
    ]);
  });

  test("of a later generation than is known here stays", async () => {
    const later = {
      type: "Accepted",
      status: "False",
      observedGeneration: 9,
      lastTransitionTime: NOW,
      reason: "Later",
      message: "",
    };
    const made = gateway("gw", [TCP]);
    const cluster = await settled({ ...made, raw: { ...made.raw, status: { conditions: [later] } } });
    expect(conditionsOf(statusOf(cluster))["Accepted"]).toBe("False Later");
  });
});

test("GatewayClasses of ours are accepted, with what they can do; those of others, and their Gateways, are not touched", async () => {
  const parameters = { parametersRef: { group: "", kind: "ConfigMap", name: "x" } };
  const cluster = new GatewayCluster(
    gatewayClass(),
    gatewayClass("with-parameters", undefined, parameters),
    gatewayClass("odd", undefined, {}, { annotations: { "fairlead.dev/addresses": "none" } }),
    gatewayClass("theirs", "example.org/theirs"),
    gateway("gw", [TCP], { gatewayClassName: "theirs" }),
    gateway("classless", [TCP], { gatewayClassName: "missing" }),
    route("r", { parents: [{ name: "gw" }, { name: "classless" }, { name: "missing" }] }),
  );
  await cluster.settle();
  const accepted = (name: string) => conditionsOf(cluster.get("GatewayClass", `/${name}`)?.["status"])["Accepted"];
  expect(["fairlead", "with-parameters", "odd"].map(accepted)).toEqual([
    "True Accepted",
    "False InvalidParameters",
    "False InvalidParameters",
  ]);
  expect(cluster.writes.every((write) => write.startsWith("PUT gatewayclasses/"))).toBe(true);
  expect(cluster.writes.some((write) => write.includes("theirs"))).toBe(false);
});

describe("a route", () => {
  const both = [listener("a", 9000), listener("b", 9001), listener("dns", 53, "UDP")];
  const from = (how: object) => listener("a", 9000, "TCP", { namespaces: how });

  test.each([
    ["all listeners of its kind", [{ name: "gw" }], "True Accepted", [1, 1, 0]],
    ["one by its name", [{ name: "gw", sectionName: "b" }], "True Accepted", [0, 1, 0]],
    ["one by its port", [{ name: "gw", port: 9000 }], "True Accepted", [1, 0, 0]],
    ["one by name and port", [{ name: "gw", sectionName: "b", port: 9001 }], "True Accepted", [0, 1, 0]],
    [
      "one by a name and the port of another",
      [{ name: "gw", sectionName: "b", port: 9000 }],
      "False NoMatchingParent",
      [0, 0, 0],
    ],
    ["one that is not there", [{ name: "gw", sectionName: "c" }], "False NoMatchingParent", [0, 0, 0]],
    ["one of another protocol", [{ name: "gw", sectionName: "dns" }], "False NotAllowedByListeners", [0, 0, 0]],
  ])("that names %s", async (_what, parents, accepted, attached) => {
    const cluster = await settled(gateway("gw", both), route("r", { parents }));
    expect(parentsOf(cluster, "r")).toMatchObject([{ parentRef: parents[0], controllerName: "fairlead.dev/gateway" }]);
    expect(parentsOf(cluster, "r").map((one) => conditionsOf(one)["Accepted"])).toEqual([accepted]);
    expect(listenersOf(cluster).map((one) => one.attachedRoutes)).toEqual(attached);
    expect(cluster.mirrored()).toHaveLength(attached.includes(1) ? 1 : 0);
  });

  const inTeam = { matchLabels: { team: "a" }, matchExpressions: [{ key: "old", operator: "DoesNotExist" }] };
  test.each([
    ["Same", { from: "Same" }, "False NotAllowedByListeners"],
    ["nothing", undefined, "False NotAllowedByListeners"],
    ["All", { from: "All" }, "True Accepted"],
    ["a selector of its labels", { from: "Selector", selector: inTeam }, "True Accepted"],
    [
      "a selector of others",
      { from: "Selector", selector: { matchLabels: { team: "b" } } },
      "False NotAllowedByListeners",
    ],
    [
      "an operator that does not exist",
      { from: "Selector", selector: { matchExpressions: [{ key: "team", operator: "Odd" }] } },
      "False NotAllowedByListeners",
    ],
    ["a value that does not exist", { from: "Everywhere" }, "False NotAllowedByListeners"],
  ])("of another namespace, where allowedRoutes says %s", async (_what, how, accepted) => {
    const other = { namespace: "other", parents: [{ name: "gw", namespace: "apps" }] };
    const cluster = await settled(
      gateway("gw", [how ? from(how) : listener("a", 9000)]),
      namespace("other", { team: "a" }),
      route("r", other),
    );
    expect(parentsOf(cluster, "r", "TCPRoute", "other").map((one) => conditionsOf(one)["Accepted"])).toEqual([
      accepted,
    ]);
  });

  test("the oldest has a listener as a whole; all are accepted and counted, and the next has it when that one goes", async () => {
    const to = (name: string, created: string): Made =>
      route(name, { created, backends: [{ name: `web-${name}`, port: 80 }] });
    const backends = ["a", "b", "c"].flatMap((name) => [
      backend(`web-${name}`),
      slice(`web-${name}`, [`10.0.1.${name.charCodeAt(0)}`]),
    ]);
    const cluster = await settled(
      to("c", "2026-01-02T00:00:00Z"),
      to("b", "2026-01-01T00:00:00Z"),
      to("a", "2026-01-02T00:00:00Z"),
      ...backends,
    );
    expect(listenersOf(cluster)).toMatchObject([{ attachedRoutes: 3 }]);
    for (const name of ["a", "b", "c"])
      expect(conditionsOf(parentsOf(cluster, name)[0])["Accepted"]).toBe("True Accepted");
    expect(cluster.mirrored()).toEqual(["tcp>8080/TCP IPv4: 10.0.1.98"]);
    cluster.delete("TCPRoute", "apps/b");
    await cluster.settle();
    expect(cluster.mirrored()).toEqual(["tcp>8080/TCP IPv4: 10.0.1.97"]);
  });

  test.each<[string, RouteFields["backends"], readonly Made[], string]>([
    ["a Service that is not there", [{ name: "gone", port: 80 }], [], "False BackendNotFound"],
    ["a port that it does not have", [{ name: "web", port: 81 }], [], "False BackendNotFound"],
    ["no port", [{ name: "web" }], [], "False BackendNotFound"],
    ["another kind", [{ kind: "Odd", name: "web", port: 80 }], [], "False InvalidKind"],
    ["another group", [{ group: "example.org", name: "web", port: 80 }], [], "False InvalidKind"],
    [
      "a name outside",
      [{ name: "out", port: 80 }],
      [backend("out", { type: "ExternalName" })],
      "False UnsupportedValue",
    ],
    ["a Gateway's Service", [{ name: "gw-fairlead", port: 9000 }], [], "False UnsupportedValue"],
    [
      "another namespace",
      [{ name: "db", namespace: "data", port: 80 }],
      [backend("db", {}, "data")],
      "False RefNotPermitted",
    ],
  ])("that leads to %s is refused its share of connections", async (_what, refs = [], more, resolved) => {
    const backends = [...refs.map((ref) => ({ ...ref, weight: 9 })), { name: "web", port: 80, weight: 1 }];
    const cluster = await settled(route("r", { backends }), ...more);
    expect(conditionsOf(parentsOf(cluster, "r")[0])).toEqual({ Accepted: "True Accepted", ResolvedRefs: resolved });
    expect(cluster.mirrored()).toEqual([
      "tcp>1/TCP IPv4 weight=9 weight-refused=true:",
      "tcp>1/TCP IPv6 weight=9 weight-refused=true:",
      "tcp>8080/TCP IPv4 weight=1: 10.0.0.1 10.0.0.2",
    ]);
  });

  test.each([
    ["its kind and namespace", { namespace: "apps" }, undefined, true],
    ["that Service", { namespace: "apps" }, "db", true],
    ["another Service", { namespace: "apps" }, "other", false],
    ["another namespace", { namespace: "other" }, undefined, false],
    ["another kind", { namespace: "apps", kind: "UDPRoute" }, undefined, false],
  ])(
    "reaches another namespace by a grant for %s only, and no longer than that is there",
    async (_what, from, name, allowed) => {
      const backends = [{ name: "db", namespace: "data", port: 80 }];
      const there = [backend("db", {}, "data"), slice("db", ["10.0.2.1"], "db-1", { namespace: "data" })];
      const cluster = await settled(route("r", { backends }), ...there, grant("data", from, name));
      expect(conditionsOf(parentsOf(cluster, "r")[0])["ResolvedRefs"]).toBe(
        allowed ? "True ResolvedRefs" : "False RefNotPermitted",
      );
      expect(cluster.mirrored()).toEqual(allowed ? ["tcp>8080/TCP IPv4: 10.0.2.1"] : []);
      cluster.delete("ReferenceGrant", "data/grant");
      await cluster.settle();
      expect(conditionsOf(parentsOf(cluster, "r")[0])["ResolvedRefs"]).toBe("False RefNotPermitted");
      expect(cluster.mirrored()).toEqual([]);
    },
  );

  test("keeps what others say of it, and what is ours goes with the reference", async () => {
    const theirs = { parentRef: { name: "gw" }, controllerName: "example.org/theirs", conditions: [] };
    const stale = { parentRef: { name: "gone" }, controllerName: "fairlead.dev/gateway", conditions: [] };
    const cluster = await settled(route("r", { status: { parents: [stale, theirs] } }));
    expect(parentsOf(cluster, "r")).toMatchObject([theirs, { parentRef: { name: "gw" } }]);
    cluster.put(gatewayClass("theirs", "example.org/theirs"));
    cluster.put(gateway("gw", [TCP], { gatewayClassName: "theirs" }, { generation: 2 }));
    await cluster.settle();
    expect(parentsOf(cluster, "r")).toEqual([theirs]);
  });
});

describe("slices of a Gateway's Service", () => {
  test("are the backend's, with conditions, zones, hints and its pods; one change of it is one write", async () => {
    const cluster = await settled(gateway("gw", [TCP, listener("b", 9001)]), route("r"));
    const written = [...cluster.objects.values()].find((raw) => (raw["ports"] as unknown[] | undefined)?.length === 2);
    expect(written).toMatchObject({
      metadata: {
        labels: {
          "kubernetes.io/service-name": "gw-fairlead",
          "endpointslice.kubernetes.io/managed-by": "gateways.fairlead.dev",
        },
        ownerReferences: [{ kind: "Service", name: "gw-fairlead", uid: "uid-Service-apps-gw-fairlead" }],
      },
      endpoints: (slice("web", ["10.0.0.1", "10.0.0.2!"]).raw as { endpoints: unknown }).endpoints,
    });
    cluster.put(slice("web", ["10.0.0.1", "10.0.0.2"]));
    expect(await cluster.settle()).toEqual([
      expect.stringMatching(/^PUT namespaces\/apps\/endpointslices\/gw-fairlead-/),
    ]);
  });

  test("are worked out once for a change, of the backend's Gateways only, and not again when the watch brings what was written", async () => {
    const other = { parents: [{ name: "other" }], backends: [{ name: "other", port: 80 }] };
    const cluster = await settled(route("r"), gateway("other", [TCP]), route("o", other), backend("other"));
    const before = cluster.reconciled.length;
    cluster.lags = true;
    cluster.put(slice("web", ["10.0.0.1"]));
    cluster.catchUp();
    expect(await cluster.settle()).toHaveLength(1);
    cluster.catchUp();
    await cluster.settle();
    expect(cluster.reconciled.slice(before)).toEqual(["Gateway apps/gw"]);
  });

  test("are not written over an older state that the watch brings after the own writes", async () => {
    const cluster = await settled(route("r"));
    cluster.lags = true;
    for (const address of ["10.0.0.3", "10.0.0.4"]) {
      cluster.state.set("EndpointSlice", "apps/web-1", slice("web", [address]).raw);
      expect(await cluster.settle()).toEqual([expect.stringMatching(/^PUT/)]);
    }
    cluster.catchUp(1);
    expect(await cluster.settle()).toEqual([]);
  });

  test("lead to the ports of each family and each set of pods, and to no endpoints of secondary networks", async () => {
    const named = [{ name: "tcp", port: 9090, protocol: "TCP" }];
    const secondary = { labels: { "endpointslice.kubernetes.io/managed-by": "networks.fairlead.dev" } };
    const cluster = await settled(
      route("r"),
      slice("web", ["2001:db8::1"], "web-6", { family: "IPv6" }),
      slice("web", ["10.0.0.9"], "web-new", { ports: named }),
      slice("web", ["192.168.0.1"], "web-net", secondary),
      slice("web", ["a.example"], "web-odd"),
    );
    expect(cluster.mirrored()).toEqual([
      "tcp>8080/TCP IPv4: 10.0.0.1 10.0.0.2",
      "tcp>8080/TCP IPv6: 2001:db8::1",
      "tcp>9090/TCP IPv4: 10.0.0.9",
    ]);
  });

  const web2 = [backend("web2"), slice("web2", ["10.0.1.1"])];
  const ref = (name: string, weight: number | undefined, port = 80) => ({
    name,
    port,
    ...(weight !== undefined && { weight }),
  });
  test.each<[string, readonly RawObject[], readonly string[]]>([
    ["9 and 1", [ref("web", 9), ref("web2", 1)], ["weight=1: 10.0.1.1", "weight=9: 10.0.0.1 10.0.0.2"]],
    [
      "none, which is 1 and 1",
      [ref("web", undefined), ref("web2", undefined)],
      ["weight=1: 10.0.0.1 10.0.0.2", "weight=1: 10.0.1.1"],
    ],
    ["1 and 0", [ref("web", 1), ref("web2", 0)], ["10.0.0.1 10.0.0.2"]],
    ["0 and 0", [ref("web", 0), ref("web2", 0)], []],
    [
      "the same Service twice",
      [ref("web", 2), ref("web", 3), ref("web2", 1)],
      ["weight=1: 10.0.1.1", "weight=5: 10.0.0.1 10.0.0.2"],
    ],
    [
      "the most, twice",
      [ref("web", 1e6), ref("web", 1e6), ref("web2", 1)],
      ["weight=1000000: 10.0.0.1 10.0.0.2", "weight=1: 10.0.1.1"],
    ],
    ["more than the most, and less than 0", [ref("web", 1e12), ref("web2", -5)], ["10.0.0.1 10.0.0.2"]],
  ])("say the weights of %s", async (_what, backends, expected) => {
    const cluster = await settled(route("r", { backends }), ...web2);
    expect(cluster.mirrored().map((text) => text.replace(/^.*IPv4:? /, ""))).toEqual(expected);
  });

  test("of a backend without endpoints are a refused share, and none where it is the only one", async () => {
    const backends = [ref("web", 1), ref("empty", 3)];
    const cluster = await settled(route("r", { backends }), backend("empty"));
    expect(cluster.mirrored()).toContain("tcp>1/TCP IPv4 weight=3 weight-refused=true:");
    expect(conditionsOf(parentsOf(cluster, "r")[0])["ResolvedRefs"]).toBe("True ResolvedRefs");
    cluster.put(slice("web", []));
    await cluster.settle();
    expect(cluster.mirrored()).toEqual([]);
  });

  test("another weight is a change of the same slice", async () => {
    const cluster = await settled(route("r", { backends: [ref("web", 9), ref("web2", 1)] }), ...web2);
    const changed = route("r", { backends: [ref("web", 9), ref("web2", 2)] });
    cluster.put({
      ...changed,
      raw: { ...changed.raw, metadata: { ...(changed.raw["metadata"] as object), generation: 2 } },
    });
    const writes = await cluster.settle();
    expect(writes.filter((write) => write.includes("endpointslices"))).toEqual([expect.stringMatching(/^PUT/)]);
  });

  test("divide the weight of a backend that needs several, by their endpoints", async () => {
    const many = Array.from({ length: 11 }, (_, part) =>
      slice(
        "web",
        Array.from({ length: 100 }, (_, at) => `10.1.${part}.${at}`),
        `web-${part + 10}`,
      ),
    );
    const cluster = await settled(route("r", { backends: [ref("web", 9), ref("web2", 1)] }), ...web2, ...many);
    const weights = cluster.mirrored().map((text) => Number(/weight=(\d+)/.exec(text)?.[1]));
    // 902 and 200 endpoints: as many whole slices of the backend as fit into one. 9 of 10 shares is 1,000,000.
    expect(weights.sort((one, other) => one - other)).toEqual([111_111, 181_488, 818_512]);
    cluster.put(slice("web", ["10.1.3.1"], "web-13"));
    expect(await cluster.settle()).toHaveLength(2);
  });

  test("of a listener with TCP and one with UDP at the same backend are one", async () => {
    const ports = [
      { name: "dns", port: 53, protocol: "UDP" },
      { name: "dns-tcp", port: 53, protocol: "TCP" },
    ];
    const refs = [{ name: "dns", port: 53 }];
    const cluster = await settled(
      gateway("gw", [listener("u", 53, "UDP"), listener("t", 53)]),
      backend("dns", { ports }),
      slice("dns", ["10.0.3.1"], "dns-1", { ports: ports.map((port) => ({ ...port, port: 5353 })) }),
      route("tcp", { backends: refs }),
      route("udp", { kind: "UDPRoute", backends: refs }),
    );
    expect(cluster.mirrored()).toEqual(["u>5353/UDP,t>5353/TCP IPv4: 10.0.3.1"]);
  });

  test("that claim to be a Gateway's are repaired; those of a Service that is not a Gateway's stay", async () => {
    const claim = { labels: { "endpointslice.kubernetes.io/managed-by": "gateways.fairlead.dev" } };
    const cluster = await settled(
      route("r"),
      slice("gw-fairlead", ["10.9.9.9"], "claimed", claim),
      slice("web", ["10.9.9.8"], "left", claim),
    );
    expect(cluster.mirrored()).toEqual(["tcp>8080/TCP IPv4: 10.0.0.1 10.0.0.2", "tcp>8080/TCP IPv4: 10.9.9.8"]);
    expect(cluster.writes).toContain("DELETE namespaces/apps/endpointslices/claimed");
  });
});
