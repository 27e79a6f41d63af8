import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { type ModeSemantics, planOnce, type ServicePortGroup } from "../src/index.ts";
import { endpointFates } from "../src/select/fates.ts";
import { slice } from "./objects.ts";

const DOCS = readFileSync(new URL("../../../docs/notices.md", import.meta.url), "utf8");

const HTTP = { family: "IPv4", name: "", protocol: "TCP" } as const;

/** What only kernelspace mode has of them. */
const KERNELSPACE: ModeSemantics = {
  localSourcesShortCut: false,
  localWithoutEndpoints: "drop",
  withoutEndpoints: "reject",
  ignoresHints: true,
  ignoresSourceRanges: true,
  terminatingStandIn: "load-balancers",
  preserveDestination: "preserve-destination",
};

const HERE = { addresses: ["10.1.0.1"], nodeName: "node-a", conditions: { ready: true } };
const THERE = { addresses: ["10.1.0.2"], nodeName: "node-b", conditions: { ready: true } };
const TERMINATING = { ready: false, serving: true, terminating: true };

interface Fields {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly ingress?: boolean;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly semantics?: ModeSemantics;
}

function plan(
  endpoints: readonly unknown[],
  { spec = {}, ingress = true, annotations = {}, semantics = KERNELSPACE }: Fields = {},
) {
  const metadata = { namespace: "default", name: "web" };
  return planOnce(
    [
      {
        kind: "Service",
        metadata: { ...metadata, annotations },
        spec: {
          type: "LoadBalancer",
          clusterIP: "10.96.0.10",
          externalIPs: ["203.0.113.9"],
          ports: [{ port: 80, nodePort: 30_080 }],
          ...spec,
        },
        status: { loadBalancer: ingress ? { ingress: [{ ip: "198.51.100.7" }] } : {} },
      },
      {
        kind: "EndpointSlice",
        metadata: { ...metadata, labels: { "kubernetes.io/service-name": "web" } },
        addressType: "IPv4",
        ports: [{ name: "", port: 8080, protocol: "TCP" }],
        endpoints,
      },
    ],
    { nodeName: "node-a", zone: "a", semantics },
  );
}

function group(...given: Parameters<typeof plan>): ServicePortGroup {
  const [found] = plan(...given).plans.IPv4.groups.values();
  if (found === undefined) throw new Error("there is no group");
  return found;
}

/** What becomes of packets from outside, by kind: the addresses that they are led to, or why to none. */
function served(...given: Parameters<typeof plan>) {
  const found = group(...given);
  return Object.fromEntries(
    found.frontends.map(({ kind, treatments: { outside } }) => [
      kind,
      outside.verdict === "proxy"
        ? `${found[outside.set].map(({ address }) => address).join()}${outside.masquerade ? " masqueraded" : ""}`
        : outside.verdict,
    ]),
  );
}

test("hints do not count", () => {
  const endpoints = [
    { ...HERE, hints: { forZones: [{ name: "a" }] } },
    { ...THERE, hints: { forZones: [{ name: "b" }] } },
  ];
  expect(group(endpoints).cluster.map(({ address }) => address)).toEqual(["10.1.0.1", "10.1.0.2"]);
  const { ignoresHints: _, ...counting } = KERNELSPACE;
  expect(group(endpoints, { semantics: counting }).cluster.map(({ address }) => address)).toEqual(["10.1.0.1"]);
});

describe("endpoints that terminate", () => {
  const endpoints = [{ ...THERE, conditions: TERMINATING }];

  test("stand in at the ClusterIP and the load balancer's address", () => {
    expect(served(endpoints)).toEqual({
      "cluster-ip": "10.1.0.2",
      "external-ip": "reject",
      "load-balancer": "10.1.0.2 masqueraded",
      "node-port": "reject",
    });
  });

  test("of no service without such an address", () => {
    const verdicts = Object.values(served(endpoints, { ingress: false }));
    expect(new Set(verdicts)).toEqual(new Set(["reject"]));
  });

  test("under Local, those of this node, while others are ready elsewhere", () => {
    const both = [{ ...HERE, conditions: TERMINATING }, THERE];
    expect(served(both, { spec: { externalTrafficPolicy: "Local" } })).toEqual({
      "cluster-ip": "10.1.0.2",
      "external-ip": "drop",
      "load-balancer": "10.1.0.1",
      "node-port": "drop",
    });
  });

  test("are explained", () => {
    const place = { nodeName: "node-a", standIns: false };
    const own = slice("web", [{ address: "10.1.0.2", ready: false, serving: true, terminating: true }]);
    expect(endpointFates([own], HTTP, place)[0]?.cluster).toEqual({
      in: false,
      why: "terminating; this mode uses such endpoints of Services with load-balancer addresses only",
    });
  });
});

describe("preserve-destination", () => {
  const annotations = { "preserve-destination": "true" };

  test("keeps node ports and load balancers to this node, and the client's address at the latter", () => {
    expect(served([HERE, THERE], { annotations })).toEqual({
      "cluster-ip": "10.1.0.1,10.1.0.2",
      "external-ip": "10.1.0.1,10.1.0.2 masqueraded",
      "load-balancer": "10.1.0.1",
      "node-port": "10.1.0.1 masqueraded",
    });
    const marked = group([HERE, THERE], { annotations }).frontends.filter((one) => one.fromLoadBalancer);
    expect(marked.map(({ kind, fromLoadBalancer }) => [kind, fromLoadBalancer])).toEqual([
      ["load-balancer", { preservesDestination: true, ready: true }],
    ]);
  });

  test("with another value it is not asked for", () => {
    expect(served([HERE, THERE], { annotations: { "preserve-destination": "yes" } })).toMatchObject({
      "node-port": "10.1.0.1,10.1.0.2 masqueraded",
    });
  });

  test("a mode without it does not keep the annotation", () => {
    const { preserveDestination: _, ...others } = KERNELSPACE;
    const found = group([HERE, THERE], { annotations, semantics: others });
    expect(found.annotations).toEqual({});
    expect(found.frontends.some((one) => "fromLoadBalancer" in one)).toBe(false);
  });
});

test("source ranges are not enforced, and that is said", () => {
  const spec = { loadBalancerSourceRanges: ["192.0.2.0/24"] };
  const planned = plan([HERE], { spec });
  expect([...planned.plans.IPv4.groups.values()][0]?.frontends.some(({ gate }) => gate !== undefined)).toBe(false);
  expect(planned.problems).toEqual([]);
  const words = "is not enforced in this mode: 198.51.100.7 is open to every client";
  const open = { field: "spec.loadBalancerSourceRanges", effect: "open", reason: words };
  expect(planned.notices).toContainEqual(expect.objectContaining(open));
  expect(DOCS).toContain(words.replace("198.51.100.7", "ADDRESS"));
  const annotations = { "fairlead.dev/node-port-source-ranges": "192.0.2.0/24" };
  expect(plan([HERE], { spec, annotations }).notices).toContainEqual(
    expect.objectContaining({ effect: "open", reason: expect.stringContaining("is not enforced in this mode") }),
  );
  const { ignoresSourceRanges: _, ...enforcing } = KERNELSPACE;
  const { notices } = plan([HERE], { spec, semantics: enforcing });
  expect(notices.filter(({ effect }) => effect === "lost" || effect === "open")).toEqual([]);
});

test("source ranges of which none can be read are not enforced either: nothing says that no client is let in", () => {
  const spec = { loadBalancerSourceRanges: ["the office"] };
  const effects = plan([HERE], { spec }).notices.filter(({ effect }) => effect !== "note");
  expect(effects).toMatchObject([{ effect: "open", reason: expect.stringContaining("198.51.100.7 is open") }]);
  // Without an address of a load balancer nothing is open.
  expect(plan([HERE], { spec, ingress: false }).notices.filter(({ effect }) => effect !== "note")).toEqual([]);
});
