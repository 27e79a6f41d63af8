import { describe, expect, test } from "vitest";
import { decodeService, type TrafficPolicy } from "../src/index.ts";

function raw(spec: object = {}, rest: { metadata?: object; status?: object } = {}): unknown {
  return {
    metadata: { namespace: "default", name: "web", ...rest.metadata },
    spec: { clusterIP: "10.96.0.10", ports: [{ port: 80 }], ...spec },
    ...(rest.status === undefined ? {} : { status: rest.status }),
  };
}

function fieldsOf(decoded: ReturnType<typeof decodeService>): readonly string[] {
  return decoded.problems.map((problem) => problem.field);
}

test.each([
  ["kube-system", { "k8s-app": "kube-dns" }, true],
  ["tenant", { "k8s-app": "kube-dns" }, undefined],
  ["kube-system", { "k8s-app": "web" }, undefined],
])("in %s with the labels %j it is the cluster's DNS: %s", (namespace, labels, clusterDNS) => {
  expect(decodeService(raw({}, { metadata: { namespace, labels } })).object?.clusterDNS).toBe(clusterDNS);
});

const gatewayReference = (name: string) => ({
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "Gateway",
  name,
});
const LONG = `${"long.".repeat(19)}names`;

test.each<[what: string, owners: unknown, gateway: string | undefined]>([
  ["of a Gateway", [gatewayReference("gw")], "shop/gw"],
  ["of a Gateway with a name of 100 letters, which no label can hold", [gatewayReference(LONG)], `shop/${LONG}`],
  [
    "of a Gateway of another version of the API",
    [{ ...gatewayReference("gw"), apiVersion: "gateway.networking.k8s.io/v2" }],
    "shop/gw",
  ],
  ["of an owner alongside a Gateway", [{ kind: "Gateway" }, null, gatewayReference("gw")], "shop/gw"],
  ["of a Gateway of another API", [{ ...gatewayReference("gw"), apiVersion: "networking.istio.io/v1" }], undefined],
  ["of another kind", [{ ...gatewayReference("gw"), kind: "TCPRoute" }], undefined],
  ["of a name that none has", [gatewayReference("\u001b[2J")], undefined],
  ["with a reference that is none", { kind: "Gateway", name: "gw" }, undefined],
  ["with a label only", undefined, undefined],
])("%s: it names %j", (_what, ownerReferences, gateway) => {
  const labels = { "gateway.networking.k8s.io/gateway-name": "long-long-f00" };
  const { object } = decodeService(raw({}, { metadata: { namespace: "shop", labels, ownerReferences } }));
  expect(object?.gateway).toBe(gateway);
  if (gateway === undefined) expect(object).not.toHaveProperty("gateway");
});

test.each<[what: string, annotation: unknown, routes: readonly (string | undefined)[]]>([
  ["names the route of each port", "sql=shop/db,dns=infra/dns.v1", ["TCPRoute shop/db", "UDPRoute infra/dns.v1"]],
  ["names none of a port without one", "dns=infra/dns", [undefined, "UDPRoute infra/dns"]],
  ["passes over what is no name", "sql=shop/\u001b[2J,dns=infra/a/b", [undefined, undefined]],
  ["passes over what is no text", 7, [undefined, undefined]],
])("a Service of a Gateway %s", (_what, annotation, routes) => {
  const ports = [
    { name: "sql", port: 5432 },
    { name: "dns", port: 53, protocol: "UDP" },
  ];
  const annotations = { "fairlead.dev/gateway-routes": annotation, "fairlead.dev/gateway-annotations": "a,b" };
  const decoded = (ownerReferences: unknown) =>
    decodeService(raw({ ports }, { metadata: { annotations, ownerReferences } }));
  const { object, problems } = decoded([gatewayReference("gw")]);
  expect(object?.ports.map(({ route }) => route)).toEqual(routes);
  // They are the controller's: an agent keeps no text of them, and reports none.
  expect([object?.annotations, problems]).toEqual([{}, []]);
  expect(JSON.stringify(decoded([]))).not.toContain("Route");
});

test("is as old as the API server says", () => {
  const createdAt = (creationTimestamp: unknown) =>
    decodeService(raw({}, { metadata: { creationTimestamp } })).object?.created;
  expect(createdAt("2030-01-01T00:00:00Z")).toBe(Date.UTC(2030, 0, 1));
  for (const bad of [null, "", "yesterday", 7, {}]) expect(createdAt(bad)).toBeUndefined();
});

test("fills in what the API server would have", () => {
  expect(decodeService(raw())).toEqual({
    namespace: "default",
    name: "web",
    object: {
      namespace: "default",
      name: "web",
      clusterIPs: ["10.96.0.10"],
      ports: [{ name: "", protocol: "TCP", port: 80 }],
      externalIPs: [],
      loadBalancerIPs: [],
      loadBalancerSourceRanges: [],
      internalTrafficPolicy: "Cluster",
      externalTrafficPolicy: "Cluster",
      annotations: {},
    },
    problems: [],
  });
});

test("keeps what the model needs, and of the annotations its own", () => {
  const { object, problems } = decodeService(
    raw(
      {
        type: "LoadBalancer",
        clusterIPs: ["10.96.0.10", "FD00:10:96:0:0:0:0:A"],
        ports: [
          { name: "dns", protocol: "UDP", port: 53, nodePort: 30053 },
          { name: "dns", protocol: "TCP", port: 53, nodePort: 30053 },
        ],
        externalIPs: ["198.51.100.1", "198.51.100.001"],
        externalTrafficPolicy: "Local",
        internalTrafficPolicy: "Local",
        sessionAffinity: "ClientIP",
        healthCheckNodePort: 31000,
        loadBalancerSourceRanges: [" 192.0.2.77/24 ", "2001:db8::1/32"],
      },
      {
        metadata: { annotations: { "fairlead.dev/ownership": "ours", "example.com/note": "x", "fairlead.dev/bad": 1 } },
        status: { loadBalancer: { ingress: [{ ip: "203.0.113.1", ipMode: "VIP" }, { hostname: "lb.example" }] } },
      },
    ),
  );
  expect(problems.map(({ field }) => field)).toEqual(["metadata.annotations"]);
  expect(object).toMatchObject({
    clusterIPs: ["10.96.0.10", "fd00:10:96::a"],
    ports: [
      { name: "dns", protocol: "UDP", port: 53, nodePort: 30053 },
      { name: "dns", protocol: "TCP", port: 53, nodePort: 30053 },
    ],
    externalIPs: ["198.51.100.1"],
    loadBalancerIPs: ["203.0.113.1"],
    loadBalancerSourceRanges: ["192.0.2.0/24", "2001:db8::/32"],
    internalTrafficPolicy: "Local",
    externalTrafficPolicy: "Local",
    affinitySeconds: 10_800,
    healthCheckNodePort: 31_000,
    annotations: { "fairlead.dev/ownership": "ours" },
  });
});

describe("of a proxy with a name", () => {
  const labeled = (value: unknown) =>
    raw({}, { metadata: { labels: { "service.kubernetes.io/service-proxy-name": value } } });

  test("only services with its label are its own", () => {
    const decode = (object: unknown) => decodeService(object, undefined, { serviceProxyName: "edge" });
    expect(decode(labeled("edge")).object?.name).toBe("web");
    expect(decode(labeled("other")).ignored).toMatch(/^left to service proxy other /);
    expect(decode(labeled("")).ignored).toMatch(/^left to service proxy "" /);
    expect(decode(raw()).ignored).toMatch(/left to the node's default proxy$/);
  });
});

describe("is none of ours", () => {
  test.each<[string, unknown, RegExp]>([
    ["headless", raw({ clusterIP: "None" }), /headless/],
    ["headless by list", raw({ clusterIP: "", clusterIPs: ["None"] }), /headless/],
    ["ExternalName", raw({ type: "ExternalName", clusterIP: "", externalName: "example.com" }), /ExternalName/],
    ["no ClusterIP yet", raw({ clusterIP: "" }), /no ClusterIP/],
    [
      "another proxy's",
      raw({}, { metadata: { labels: { "service.kubernetes.io/service-proxy-name": "other" } } }),
      /^left to service proxy other /,
    ],
  ])("%s", (_, object, reason) => {
    const decoded = decodeService(object);
    expect(decoded.ignored).toMatch(reason);
    expect(decoded.object).toBeUndefined();
    expect(decoded.problems).toEqual([]);
  });
});

test("what a problem quotes shows what would hide or turn text round", () => {
  const { problems } = decodeService(raw({ clusterIP: "10.\u202e1" }, { metadata: { name: "web\u2066" } }));
  for (const { name, value } of problems) expect(name + value).not.toMatch(/[\p{Cf}\p{Zl}\p{Zp}]/u);
  expect(problems[0]?.name).toBe('"web\\u2066"');
});

describe("is skipped with a problem", () => {
  test.each<[string, unknown, string]>([
    ["no ports", raw({ ports: [] }), "spec.ports"],
    ["ports of no kind", raw({ ports: "80" }), "spec.ports"],
    ["port 0", raw({ ports: [{ port: 0 }] }), "spec.ports[0].port"],
    ["port 70000", raw({ ports: [{ port: 70_000 }] }), "spec.ports[0].port"],
    ["a port that is text", raw({ ports: [{ port: "80" }] }), "spec.ports[0].port"],
    ["half a port", raw({ ports: [{ port: 80.5 }] }), "spec.ports[0].port"],
    ["None with NodePort", raw({ type: "NodePort", clusterIP: "None" }), "spec.clusterIP"],
    ["a ClusterIP that is none", raw({ clusterIP: "ten" }), "spec.clusterIP"],
    ["a loopback ClusterIP", raw({ clusterIP: "127.0.0.1" }), "spec.clusterIP"],
    [
      "an IPv6 link-local ClusterIP, which means nothing without a device",
      raw({ clusterIP: "fe80::1" }),
      "spec.clusterIP",
    ],
    ["no name", raw({}, { metadata: { name: "" } }), "metadata.name"],
    ["no namespace", raw({}, { metadata: { namespace: undefined } }), "metadata.namespace"],
    ["a name that ends a comment", raw({}, { metadata: { name: 'web" -j ACCEPT' } }), "metadata.name"],
    ["a name that is an option", raw({}, { metadata: { name: "--comment" } }), "metadata.name"],
    ["a name of two lines", raw({}, { metadata: { name: "web\n-A INPUT" } }), "metadata.name"],
    ["a name that ends a line", raw({}, { metadata: { name: "web\n" } }), "metadata.name"],
    ["a namespace with a slash", raw({}, { metadata: { namespace: "a/b" } }), "metadata.namespace"],
    ["a namespace with a space", raw({}, { metadata: { namespace: "a b" } }), "metadata.namespace"],
    ["a name in capitals", raw({}, { metadata: { name: "Web" } }), "metadata.name"],
    ["a name too long", raw({}, { metadata: { name: "a".repeat(254) } }), "metadata.name"],
    ["a hostile port name", raw({ ports: [{ name: 'x" --', port: 80 }] }), "spec.ports[0].name"],
    ["a port name of two lines", raw({ ports: [{ name: "x\n", port: 80 }] }), "spec.ports[0].name"],
    ["an unknown protocol", raw({ ports: [{ protocol: "ICMP", port: 80 }] }), "spec.ports[0].protocol"],
    ["nothing at all", null, "metadata.namespace"],
  ])("%s", (_, object, field) => {
    const decoded = decodeService(object ?? { spec: { clusterIP: "10.96.0.1" } });
    expect(decoded.object).toBeUndefined();
    expect(fieldsOf(decoded)).toContain(field);
  });
});

test("a link-local ClusterIP is served, as node-local DNS has one", () => {
  const { object, problems } = decodeService(raw({ clusterIPs: ["169.254.20.10"] }));
  expect(object?.clusterIPs).toEqual(["169.254.20.10"]);
  expect(problems).toEqual([]);
});

test("of a load balancer's addresses only those are left out that no host can have", () => {
  const refused = ["0.0.0.0", "0.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "ff02::1"];
  const ingress = ["127.0.0.10", "169.254.1.1", "::1", ...refused].map((ip) => ({ ip }));
  const { object, problems } = decodeService(raw({}, { status: { loadBalancer: { ingress } } }));
  expect(object?.loadBalancerIPs).toEqual(["127.0.0.10", "169.254.1.1", "::1"]);
  expect(problems.map(({ field }) => field)).toEqual(refused.map((_, i) => `status.loadBalancer.ingress[${i + 3}].ip`));
});

describe("loses just the bad part", () => {
  test.each<[spec: object, field: string, left: object]>([
    [
      {
        ports: [
          { name: "a", port: 0 },
          { name: "b", port: 81 },
        ],
      },
      "spec.ports[0].port",
      { ports: [{ name: "b", protocol: "TCP", port: 81 }] },
    ],
    [
      { type: "NodePort", ports: [{ port: 80, nodePort: 70_000 }] },
      "spec.ports[0].nodePort",
      { ports: [{ name: "", protocol: "TCP", port: 80 }] },
    ],
    [
      {
        ports: [
          { name: "a", port: 80 },
          { name: "a", port: 81 },
        ],
      },
      "spec.ports[1].name",
      { ports: [{ name: "a", protocol: "TCP", port: 80 }] },
    ],
    [{ clusterIPs: ["10.96.0.10", "10.96.0.11"] }, "spec.clusterIPs", { clusterIPs: ["10.96.0.10"] }],
    [{ clusterIPs: ["10.96.0.10", "fd00::x"] }, "spec.clusterIPs[1]", { clusterIPs: ["10.96.0.10"] }],
    [{ externalIPs: ["169.254.1.1", "198.51.100.1"] }, "spec.externalIPs[0]", { externalIPs: ["198.51.100.1"] }],
    [{ externalIPs: ["198.51.100.1", "240.0.0.1"] }, "spec.externalIPs[1]", { externalIPs: ["198.51.100.1"] }],
    [{ externalIPs: ["239.1.1.1", "198.51.100.1"] }, "spec.externalIPs[0]", { externalIPs: ["198.51.100.1"] }],
    [
      { loadBalancerSourceRanges: ["192.0.2.0/24", "everywhere"] },
      "spec.loadBalancerSourceRanges[1]",
      { loadBalancerSourceRanges: ["192.0.2.0/24"] },
    ],
    [{ internalTrafficPolicy: "local" }, "spec.internalTrafficPolicy", { internalTrafficPolicy: "Cluster" }],
    [
      { sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds: 100_000 } } },
      "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
      { affinitySeconds: 10_800 },
    ],
    [
      { type: "LoadBalancer", externalTrafficPolicy: "Local", healthCheckNodePort: -1 },
      "spec.healthCheckNodePort",
      { externalTrafficPolicy: "Local" },
    ],
  ])("%j: %s", (spec, field, left) => {
    const decoded = decodeService(raw(spec));
    expect(fieldsOf(decoded)).toEqual([field]);
    expect(decoded.object).toMatchObject(left);
  });
});

describe("source ranges", () => {
  test("a range over a whole family takes that family's ranges away, no other's", () => {
    const ranges = ["192.0.2.0/24", "0.0.0.0/0", "2001:db8::/32"];
    expect(decodeService(raw({ loadBalancerSourceRanges: ranges })).object?.loadBalancerSourceRanges).toEqual([
      "2001:db8::/32",
    ]);
  });

  test("white space and empty ones mean nothing", () => {
    const decoded = decodeService(raw({ loadBalancerSourceRanges: ["", "  ", "\t192.0.2.1/32\n"] }));
    expect(decoded.object?.loadBalancerSourceRanges).toEqual(["192.0.2.1/32"]);
    expect(decoded.problems).toEqual([]);
  });
});

describe("external policy", () => {
  test.each<[string, object, TrafficPolicy]>([
    ["NodePort", { type: "NodePort" }, "Local"],
    ["LoadBalancer", { type: "LoadBalancer" }, "Local"],
    ["ClusterIP with an external IP", { externalIPs: ["198.51.100.1"] }, "Local"],
    ["ClusterIP without", {}, "Cluster"],
  ])("of type %s", (_, spec, policy) => {
    const { object } = decodeService(raw({ ...spec, externalTrafficPolicy: "Local" }));
    expect(object?.externalTrafficPolicy).toBe(policy);
  });
});

test("the annotation for the IP mode goes before VIP, which the API server fills in, and not before what else is said", () => {
  const ingress = [{ ip: "203.0.113.1" }, { ip: "203.0.113.2", ipMode: "VIP" }, { ip: "203.0.113.3", ipMode: "Proxy" }];
  const addresses = (mode: string) =>
    decodeService(
      raw(
        { type: "LoadBalancer" },
        {
          metadata: { namespace: "shop", name: "web", annotations: { "fairlead.dev/load-balancer-ip-mode": mode } },
          status: { loadBalancer: { ingress } },
        },
      ),
    ).object?.loadBalancerIPs;
  expect(addresses("Proxy")).toEqual([]);
  expect(addresses("VIP")).toEqual(["203.0.113.1", "203.0.113.2"]);
});

test("ipMode Proxy and unknown modes get no address; IPv4-mapped addresses are IPv4", () => {
  const ingress = [
    { ip: "203.0.113.1", ipMode: "Proxy" },
    { ip: "203.0.113.2", ipMode: "Other" },
    { ip: "::ffff:203.0.113.3", ipMode: null },
    { ip: "" },
  ];
  const decoded = decodeService(raw({ type: "LoadBalancer" }, { status: { loadBalancer: { ingress } } }));
  expect(decoded.object?.loadBalancerIPs).toEqual(["203.0.113.3"]);
  expect(decoded.problems).toEqual([]);
});

test("a problem can stand in any log line", () => {
  const { problems } = decodeService(raw({}, { metadata: { name: 'a\n"b"\u001b[31m', namespace: "x".repeat(300) } }));
  for (const { namespace, name, value } of problems) {
    for (const text of [namespace, name, value]) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
      expect(text).not.toMatch(/[\u0000-\u001f]/);
      expect(text.length).toBeLessThan(100);
    }
  }
  expect(problems).toHaveLength(2);
});

test("annotations are Fairlead's own, and those that are asked for", () => {
  const annotations = { "fairlead.dev/ownership": "ours", "ovn.kubernetes.io/vpc": "blue", other: "x" };
  const kept = (wanted?: ReadonlySet<string>) =>
    decodeService(raw({}, { metadata: { annotations } }), undefined, wanted && { annotations: wanted }).object
      ?.annotations;
  expect(kept()).toEqual({ "fairlead.dev/ownership": "ours" });
  expect(kept(new Set(["ovn.kubernetes.io/vpc", "toString"]))).toEqual({
    "fairlead.dev/ownership": "ours",
    "ovn.kubernetes.io/vpc": "blue",
  });
});
