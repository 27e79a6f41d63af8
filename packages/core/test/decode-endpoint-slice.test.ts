import { describe, expect, test } from "vitest";
import { createIntern, decodeEndpointSlice } from "../src/index.ts";

function raw(fields: object = {}, labels: object = { "kubernetes.io/service-name": "web" }, annotations = {}): unknown {
  return {
    metadata: { namespace: "default", name: "web-abc", labels, annotations },
    addressType: "IPv4",
    ports: [{ name: "", port: 8080, protocol: "TCP" }],
    endpoints: [{ addresses: ["10.144.1.5"], conditions: { ready: true } }],
    ...fields,
  };
}

function decodeEndpoint(item: object, addressType = "IPv4") {
  const { object, problems } = decodeEndpointSlice(raw({ addressType, endpoints: [item] }));
  return { endpoint: object?.endpoints[0], problems };
}

test("keeps what the model needs", () => {
  const endpoints = [
    {
      addresses: ["10.144.1.5", "10.144.1.6"],
      conditions: { ready: false, serving: true, terminating: true },
      nodeName: "node-a",
      zone: "z1",
      hints: { forZones: [{ name: "z1" }], forNodes: [{ name: "node-a" }] },
      targetRef: { kind: "Pod", name: "web-1" },
    },
  ];
  const trigger = { "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:01.5Z" };
  const labels = { "kubernetes.io/service-name": "web", "service.kubernetes.io/service-proxy-name": "other" };
  expect(decodeEndpointSlice(raw({ endpoints }, labels, trigger))).toEqual({
    namespace: "default",
    name: "web-abc",
    object: {
      namespace: "default",
      name: "web-abc",
      serviceName: "web",
      family: "IPv4",
      ports: [{ name: "", protocol: "TCP", port: 8080 }],
      endpoints: [
        {
          address: "10.144.1.5",
          ready: false,
          serving: true,
          terminating: true,
          nodeName: "node-a",
          zoneHints: ["z1"],
          nodeHints: ["node-a"],
        },
      ],
      triggerTime: Date.UTC(2026, 0, 1, 0, 0, 1, 500),
    },
    problems: [],
    notices: [expect.objectContaining({ field: "endpoints[0].addresses", effect: "note" })],
  });
});

test.each([
  ["absent", {}],
  ["null", { conditions: { ready: null, serving: null, terminating: null } }],
  ["empty", { conditions: {}, hints: {}, nodeName: null }],
  ["empty hints", { hints: { forZones: [], forNodes: [] } }],
])("conditions that are %s mean ready, serving, not terminating", (_, item) => {
  expect(decodeEndpoint({ addresses: ["10.144.1.5"], ...item }).endpoint).toEqual({
    address: "10.144.1.5",
    ready: true,
    serving: true,
    terminating: false,
  });
});

describe("leaves an endpoint out with a problem", () => {
  test.each<[string, object, string?]>([
    ["a host name", { addresses: ["web.example"] }],
    ["the other family", { addresses: ["fd00::1"] }],
    ["the other family", { addresses: ["10.144.1.5"] }, "IPv6"],
    ["an IPv4-mapped address, which is IPv4", { addresses: ["::ffff:10.144.1.5"] }, "IPv6"],
    ["loopback", { addresses: ["127.0.0.1"] }],
    ["link-local", { addresses: ["169.254.0.1"] }],
    ["multicast", { addresses: ["224.0.0.5"] }],
    ["no address", { addresses: [] }],
    ["an empty address", { addresses: [""] }],
    ["a number", { addresses: [10] }],
  ])("%s", (_, item, addressType) => {
    const { endpoint, problems } = decodeEndpoint(item, addressType);
    expect(endpoint).toBeUndefined();
    expect(problems.map((problem) => problem.field)).toEqual(["endpoints[0].addresses[0]"]);
  });

  test("and keeps the others", () => {
    const endpoints = [{ addresses: ["nowhere"] }, { addresses: ["10.144.1.6"] }, "rubbish"];
    const { object, problems } = decodeEndpointSlice(raw({ endpoints }));
    expect(object?.endpoints.map((endpoint) => endpoint.address)).toEqual(["10.144.1.6"]);
    expect(problems).toHaveLength(2);
  });
});

describe("one address that several endpoints of a slice have is that of the last which doesn't terminate, as upstream", () => {
  const on = (nodeName: string, conditions: object = {}) => ({ addresses: ["10.144.1.5"], nodeName, conditions });
  const draining = { ready: false, serving: true, terminating: true };
  test.each<[string, readonly object[], string]>([
    ["the last", [on("node-a"), on("node-b")], "node-b"],
    ["the last, ready or not", [on("node-a"), on("node-b", { ready: false })], "node-b"],
    ["not one that terminates", [on("node-a"), on("node-b", draining)], "node-a"],
    ["not one that terminates, wherever it stands", [on("node-b", draining), on("node-a")], "node-a"],
    ["the first of those that terminate", [on("node-a", draining), on("node-b", draining)], "node-a"],
    ["whatever it is written like", [on("node-a"), { ...on("node-b"), addresses: ["010.144.1.5"] }], "node-b"],
  ])("%s", (_, endpoints, nodeName) => {
    const others = [{ addresses: ["10.144.1.4"] }, { addresses: ["10.144.1.6"] }];
    const { object, problems } = decodeEndpointSlice(raw({ endpoints: [others[0], ...endpoints, others[1]] }));
    const addresses = object?.endpoints.map((endpoint) => endpoint.address);
    expect(addresses).toEqual(["10.144.1.4", "10.144.1.5", "10.144.1.6"]);
    expect(object?.endpoints[1]?.nodeName).toBe(nodeName);
    expect(problems).toEqual([]);
  });
});

test("of special addresses only loopback is taken, and only on request", () => {
  const endpoints = [{ addresses: ["127.0.0.1"] }, { addresses: ["169.254.0.1"] }];
  const { object, problems } = decodeEndpointSlice(raw({ endpoints }), undefined, { loopback: true });
  expect(object?.endpoints.map((endpoint) => endpoint.address)).toEqual(["127.0.0.1"]);
  expect(problems).toHaveLength(1);
});

test("an IPv4-mapped address in an IPv4 slice is that IPv4 address", () => {
  expect(decodeEndpoint({ addresses: ["::ffff:10.144.1.5"] }).endpoint?.address).toBe("10.144.1.5");
});

describe("ports", () => {
  test.each<[string, object, number]>([
    ["without a name", { port: 80 }, 0],
    ["with a null name", { name: null, port: 80 }, 0],
    ["without a number", { name: "a" }, 0],
    ["with number 0", { name: "a", port: 0 }, 0],
    ["with number 70000", { name: "a", port: 70_000 }, 1],
    ["with a hostile name", { name: "a b", port: 80 }, 1],
    ["with an unknown protocol", { name: "a", port: 80, protocol: "QUIC" }, 1],
  ])("%s are left out", (_, port, problems) => {
    const decoded = decodeEndpointSlice(raw({ ports: [port, { name: "b", port: 81 }] }));
    expect(decoded.object?.ports).toEqual([{ name: "b", protocol: "TCP", port: 81 }]);
    expect(decoded.problems).toHaveLength(problems);
  });
});

describe("is none of ours", () => {
  test.each<[string, unknown]>([
    ["a headless service's", raw({}, { "kubernetes.io/service-name": "web", "service.kubernetes.io/headless": "" })],
    ["FQDN", raw({ addressType: "FQDN" })],
    ["without a service", raw({}, {})],
  ])("%s", (_, object) => {
    const decoded = decodeEndpointSlice(object);
    expect(decoded.ignored).toBeTypeOf("string");
    expect(decoded.object).toBeUndefined();
    expect(decoded.problems).toEqual([]);
  });
});

test.each<[string, unknown, string]>([
  ["an unknown address type", raw({ addressType: "IPv5" }), "addressType"],
  [
    "a hostile service name",
    raw({}, { "kubernetes.io/service-name": 'web" -j' }),
    'metadata.labels["kubernetes.io/service-name"]',
  ],
])("%s skips the slice with a problem", (_, object, field) => {
  const decoded = decodeEndpointSlice(object);
  expect(decoded.object).toBeUndefined();
  expect(decoded.problems.map((problem) => problem.field)).toEqual([field]);
});

test("a trigger time that is none is a problem and nothing else", () => {
  const trigger = { "endpoints.kubernetes.io/last-change-trigger-time": "yesterday" };
  const decoded = decodeEndpointSlice(raw({}, { "kubernetes.io/service-name": "web" }, trigger));
  expect(decoded.object?.triggerTime).toBeUndefined();
  expect(decoded.object?.endpoints).toHaveLength(1);
  expect(decoded.problems).toHaveLength(1);
});

test("an interner forgets when it is full and stays right", () => {
  const intern = createIntern(2);
  expect(["a", "b", "c", "a", "b"].map(intern)).toEqual(["a", "b", "c", "a", "b"]);
});
