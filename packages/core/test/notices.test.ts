import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { decodeEndpointSlice, decodeNode, decodeService, type Effect, type Problem, planOnce } from "../src/index.ts";
import { SHORT_CUT } from "./objects.ts";

const DOCS = readFileSync(new URL("../../../docs/notices.md", import.meta.url), "utf8");

type Fields = Record<string, unknown>;

interface Case {
  readonly spec?: Fields;
  readonly status?: Fields;
  readonly annotations?: Fields;
}

const service = ({ spec = {}, status = {}, annotations = {} }: Case) => ({
  kind: "Service",
  metadata: { namespace: "shop", name: "web", annotations },
  spec: { clusterIP: "10.96.0.16", clusterIPs: ["10.96.0.16"], ports: [{ port: 80 }], ...spec },
  status,
});

const balanced = (ip: string, more: Fields = {}) => ({ loadBalancer: { ingress: [{ ip, ...more }] } });
const LB = { type: "LoadBalancer" };
const V4 = balanced("203.0.113.42");
const NODE_PORT = [{ port: 80, nodePort: 30_083 }];
const ipMode = (value: string) => ({ "fairlead.dev/load-balancer-ip-mode": value });

const [RANGES, INGRESS, ANNOTATIONS] = [
  "spec.loadBalancerSourceRanges",
  "status.loadBalancer.ingress",
  "metadata.annotations",
] as const;
const onBalancer = (spec: Fields): Case => ({ spec: { ...LB, ...spec }, status: V4 });

/** By the words of docs/notices.md: effect, field and a Service. */
const SERVICES: readonly (readonly [words: string, effect: Effect, field: string, object: Case])[] = [
  ["is open to every client", "open", RANGES, onBalancer({ loadBalancerSourceRanges: ["2001:db8:5::/48"] })],
  ["has no effect with type", "note", RANGES, { spec: { loadBalancerSourceRanges: ["192.0.2.0/24"] } }],
  [
    "the others have no effect",
    "note",
    RANGES,
    onBalancer({ loadBalancerSourceRanges: ["192.0.2.0/24", "0.0.0.0/0"] }),
  ],
  [
    "does not limit the node ports",
    "note",
    RANGES,
    onBalancer({ ports: NODE_PORT, loadBalancerSourceRanges: ["192.0.2.0/24"] }),
  ],
  [
    "does not limit the external IPs",
    "note",
    RANGES,
    onBalancer({ externalIPs: ["198.51.100.1"], loadBalancerSourceRanges: ["192.0.2.0/24"] }),
  ],
  [
    "is left to the load balancer",
    "note",
    RANGES,
    {
      spec: { ...LB, loadBalancerSourceRanges: ["192.0.2.0/24"] },
      status: balanced("203.0.113.42", { ipMode: "Proxy" }),
    },
  ],
  [
    "load-balancer-ip-mode leaves 203.0.113.42 to the load balancer, with spec.loadBalancerSourceRanges",
    "note",
    ANNOTATIONS,
    { spec: LB, status: V4, annotations: ipMode("Proxy") },
  ],
  [
    "has no effect on 203.0.113.42: status says Proxy",
    "note",
    ANNOTATIONS,
    { spec: LB, status: balanced("203.0.113.42", { ipMode: "Proxy" }), annotations: ipMode("VIP") },
  ],
  ["load-balancer-ip-mode has no effect with type", "note", ANNOTATIONS, { annotations: ipMode("Proxy") }],
  [
    "node-port-source-ranges has no effect: no port of this Service has a node port",
    "note",
    ANNOTATIONS,
    { annotations: { "fairlead.dev/node-port-source-ranges": "192.0.2.0/24" } },
  ],
  ["has no address yet", "note", INGRESS, { spec: LB }],
  ["is served though the type is", "note", INGRESS, { status: V4 }],
  [
    "has no ip: packets go to the load balancer and back",
    "note",
    "status.loadBalancer.ingress[0].hostname",
    { spec: LB, status: { loadBalancer: { ingress: [{ hostname: "lb.example" }] } } },
  ],
  ["is not in status", "note", "spec.loadBalancerIP", onBalancer({ loadBalancerIP: "203.0.113.9" })],
  ["is not served: the Service has no", "lost", INGRESS, { spec: LB, status: balanced("2001:db8::1") }],
  ["is not served: the Service has no", "lost", "spec.externalIPs", { spec: { externalIPs: ["2001:db8::1"] } }],
  ["is the Service's own ClusterIP", "note", "spec.externalIPs", { spec: { externalIPs: ["10.96.0.16"] } }],
  ["is not served in this family", "note", "spec.ipFamilies", { spec: { ipFamilies: ["IPv4", "IPv6"] } }],
  ["is open inside the cluster only", "note", 'spec.ports[name=""].nodePort', { spec: { type: "NodePort" } }],
  [
    "on every node away from it",
    "lost",
    'spec.ports[name=""].nodePort',
    { spec: { type: "NodePort", ports: [{ port: 80, nodePort: 10_250 }] } },
  ],
  ["is open though the type is ClusterIP", "note", 'spec.ports[name=""].nodePort', { spec: { ports: NODE_PORT } }],
  [
    "clients outside the cluster have no address",
    "note",
    "spec.externalTrafficPolicy",
    { spec: { externalTrafficPolicy: "Local" } },
  ],
  [
    "is not opened: it needs type LoadBalancer",
    "note",
    "spec.healthCheckNodePort",
    onBalancer({ healthCheckNodePort: 31_000 }),
  ],
  [
    "has no effect without sessionAffinity",
    "note",
    "spec.sessionAffinityConfig",
    { spec: { sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } } },
  ],
  [
    "is unknown and has no effect; it can be PreferClose",
    "note",
    "spec.trafficDistribution",
    { spec: { trafficDistribution: "PreferSameRack" } },
  ],
];

describe("a Service's notice", () => {
  test.each(SERVICES)("%s", (words, effect, field, object) => {
    const { problems, notices = [], object: decoded } = decodeService(service(object));
    expect(decoded).toBeDefined();
    expect(problems).toEqual([]);
    expect(notices).toMatchObject([
      { kind: "Service", name: "web", field, effect, reason: expect.stringContaining(words) },
    ]);
    expect(DOCS).toContain(words.replace("203.0.113.42", "ADDRESS"));
  });

  test.each(["proxy", ""])("a load-balancer IP mode %j is invalid, and as without it", (value) => {
    const decoded = decodeService(service({ spec: LB, status: V4, annotations: ipMode(value) }));
    expect(decoded.object?.loadBalancerIPs).toEqual(["203.0.113.42"]);
    expect(decoded.problems).toMatchObject([
      {
        field: "metadata.annotations",
        value: JSON.stringify(value),
        reason: "fairlead.dev/load-balancer-ip-mode must be Proxy or VIP; using what status says",
      },
    ]);
  });

  test("source ranges of which none can be read let no client in, and that is said", () => {
    const spec = { ...LB, loadBalancerSourceRanges: ["10.0.0.0/33", "the office"] };
    const written = service({ spec, status: V4 });
    const { object, problems } = decodeService(written);
    expect(object).toMatchObject({ loadBalancerSourceRanges: [], unreadableSourceRanges: true });
    expect(problems.map(({ value }) => value)).toEqual(['"10.0.0.0/33"', '"the office"']);
    const words = "has no CIDR: 203.0.113.42 lets no client in";
    const { notices } = planOnce([written], { nodeName: "node-a", semantics: SHORT_CUT });
    expect(notices).toContainEqual(expect.objectContaining({ effect: "lost", reason: words }));
    expect(DOCS).toContain(words.replace("203.0.113.42", "ADDRESS"));
  });

  test.each([[["10.0.0.0/33", "10.0.0.0/8"]], [[" "]], [[]]])("%j are source ranges as they are", (ranges) => {
    const { object } = decodeService(service({ spec: { ...LB, loadBalancerSourceRanges: ranges }, status: V4 }));
    expect(object).not.toHaveProperty("unreadableSourceRanges");
  });

  test("source ranges of node ports are said to limit them", () => {
    const spec = { ...LB, ports: NODE_PORT, loadBalancerSourceRanges: ["192.0.2.0/24"] };
    const annotations = { "fairlead.dev/node-port-source-ranges": "192.0.2.0/24" };
    expect(decodeService(service({ spec, status: V4, annotations }))).not.toHaveProperty("notices");
  });

  test("an annotation of ours that is misspelled is invalid", () => {
    const { problems } = decodeService(service({ annotations: { "fairlead.dev/node-port-adresses": "10.0.0.0/8" } }));
    expect(problems).toMatchObject([{ field: "metadata.annotations", value: '"10.0.0.0/8"' }]);
    expect(problems[0]?.reason).toMatch(/^fairlead\.dev\/node-port-adresses is unknown/);
  });

  test("an ordinary one has none", () => {
    const ports = [{ port: 80, nodePort: 30_083 }];
    const loadBalancer = service({ spec: { ...LB, ports, externalTrafficPolicy: "Local" }, status: V4 });
    for (const raw of [service({}), service({ spec: { type: "NodePort", ports } }), loadBalancer]) {
      expect(decodeService(raw)).not.toHaveProperty("notices");
    }
  });
});

const slice = (more: Fields = {}) => ({
  kind: "EndpointSlice",
  metadata: { namespace: "shop", name: "web-1", labels: { "kubernetes.io/service-name": "web" } },
  addressType: "IPv4",
  ports: [{ name: "", port: 8080 }],
  endpoints: [{ addresses: ["10.144.1.10"], nodeName: "node-a" }],
  ...more,
});

describe("an EndpointSlice's notice names its Service", () => {
  test.each<[string, Effect, string, Fields]>([
    ["this port of the slice is not used", "lost", "ports[0].port", { ports: [{ name: "" }] }],
    ["this port of the slice is not used", "lost", "ports[0].name", { ports: [{ port: 8080 }] }],
    ["gives names, which no proxy can use", "lost", "addressType", { addressType: "FQDN", endpoints: [] }],
    [
      "only the first is used",
      "note",
      "endpoints[0].addresses",
      { endpoints: [{ addresses: ["10.144.1.1", "10.144.1.2"] }] },
    ],
  ])("%s (%s %s)", (words, effect, field, more) => {
    const { notices, problems } = decodeEndpointSlice(slice(more));
    expect(problems).toEqual([]);
    expect(notices).toMatchObject([{ field, effect, service: "web", reason: expect.stringContaining(words) }]);
    expect(DOCS).toContain(words);
  });

  test("a condition that is no boolean is invalid", () => {
    const { problems } = decodeEndpointSlice(
      slice({ endpoints: [{ addresses: ["10.144.1.1"], conditions: { ready: "false" } }] }),
    );
    expect(problems).toMatchObject([{ field: "endpoints[0].conditions.ready", value: '"false"' }]);
  });
});

describe("a Node's notice", () => {
  const address = (...addresses: readonly string[]) => ({
    addresses: addresses.map((one) => ({ type: "InternalIP", address: one })),
  });
  test.each<[string, string, Fields]>([
    ["this node's address is unknown", "status.addresses", { status: {} }],
    ["is a loopback address", "status.addresses", { status: address("127.0.0.1") }],
    ["is not this node's first", "status.addresses", { status: address("192.0.2.1", "192.0.2.2") }],
    [
      "is not the first of spec.podCIDRs",
      "spec.podCIDR",
      { spec: { podCIDR: "10.1.0.0/24", podCIDRs: ["10.2.0.0/24"] } },
    ],
  ])("%s", (words, field, more) => {
    const { notices } = decodeNode({ metadata: { name: "node-a" }, status: address("192.0.2.1"), ...more });
    expect(notices).toMatchObject([{ kind: "Node", field, effect: "note", reason: expect.stringContaining(words) }]);
    expect(DOCS).toContain(words);
  });

  test("the old label of its zone", () => {
    const labels = { "failure-domain.beta.kubernetes.io/zone": "z1" };
    const { notices } = decodeNode({ metadata: { name: "node-a", labels }, status: address("192.0.2.1") });
    expect(notices).toMatchObject([
      { effect: "note", reason: expect.stringContaining("is not read: zone hints need") },
    ]);
    expect(DOCS).toContain("is not read: zone hints need");
  });
});

describe("what only a plan shows", () => {
  const planned = (objects: readonly unknown[], more: Fields = {}): readonly Problem[] =>
    planOnce(objects, { semantics: SHORT_CUT, nodeName: "node-a", nodeIPs: { IPv4: "192.0.2.10" }, ...more }).notices;
  const said = (found: readonly Problem[]) => found.map(({ field, effect, reason }) => ({ field, effect, reason }));

  test.each<[string, Effect, string, Case, Fields?, Fields?]>([
    [
      "takes port 10250",
      "lost",
      "spec.externalIPs",
      { spec: { externalIPs: ["192.0.2.10"], ports: [{ port: 10_250 }] } },
    ],
    [
      "nothing else on the node is reached there",
      "note",
      "spec.externalIPs",
      { spec: { externalIPs: ["192.0.2.11"] } },
      { ownIPs: ["192.0.2.11"] },
    ],
    ["nothing else on the node is reached there", "note", INGRESS, { spec: LB, status: balanced("192.0.2.10") }],
    [
      "the feature gate AllowServiceExternalIPs is off",
      "lost",
      "spec.externalIPs",
      { spec: { externalIPs: ["198.51.100.1"] } },
      { externalIPs: false },
    ],
    [
      "node-port-source-ranges has no CIDR of IPv4",
      "lost",
      ANNOTATIONS,
      {
        spec: { type: "NodePort", ports: NODE_PORT },
        annotations: { "fairlead.dev/node-port-source-ranges": "2001:db8::/32" },
      },
    ],
    [
      "no-local-endpoint has no effect: no traffic policy of this Service is Local",
      "note",
      ANNOTATIONS,
      { annotations: { "fairlead.dev/no-local-endpoint": "reject" } },
    ],
    [
      "finds no endpoint on any node",
      "lost",
      "spec.internalTrafficPolicy",
      { spec: { internalTrafficPolicy: "Local" } },
      {},
      { endpoints: [{ addresses: ["10.144.1.10"] }] },
    ],
    [
      "none of this name and protocol",
      "note",
      "spec.ports",
      { spec: { ports: [{ name: "http", port: 80 }] } },
      {},
      { ports: [{ name: "web", port: 8080 }] },
    ],
  ])("%s (%s %s)", (words, effect, field, object, options = {}, more = {}) => {
    const found = said(planned([service(object), slice(more)], options));
    expect(found).toEqual([{ field, effect, reason: expect.stringContaining(words) }]);
    expect(DOCS).toContain(words.replace("10250", "PORT").replace("IPv4", "FAMILY"));
  });

  test("no slice at all", () => {
    expect(said(planned([service({})]))).toMatchObject([{ field: "spec.selector", effect: "note" }]);
    expect(DOCS).toContain("no EndpointSlice has");
  });
});
