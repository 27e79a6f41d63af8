import { toEnd } from "@fairlead/base";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type EndpointSlice,
  endpointFates,
  type FilterEndpoint,
  hintsOutcome,
  type SliceEndpoint,
} from "../src/index.ts";
import { candidates } from "../src/select/candidates.ts";
import { endpointSets } from "../src/select/endpoint-sets.ts";
import { countLocalReady } from "../src/select/local-ready.ts";
import { type NodeTopology, topologyFilter } from "../src/select/topology.ts";
import { addressesOf, DRAINING, endpoint, HERE, NOT_READY, slice } from "./objects.ts";

const PLACE: NodeTopology = { nodeName: "node-a", zone: "z1" };
const HTTP = { family: "IPv4", name: "", protocol: "TCP" } as const;

function setsOf(endpoints: readonly SliceEndpoint[], place: NodeTopology = PLACE) {
  const sets = toEnd(endpointSets(toEnd(candidates([slice("web", endpoints)], HTTP)), place));
  const { any, ...lists } = sets;
  return {
    any,
    cluster: addressesOf(lists.cluster),
    local: addressesOf(lists.local),
    serving: addressesOf(lists.serving),
  };
}

const [A, B, C] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"] as const;
const addressesIn = (letters: string) => Array.from(letters, (letter) => ({ A, B, C })[letter]);
const zone = (...zoneHints: string[]) => ({ zoneHints });
const node = (...nodeHints: string[]) => ({ nodeHints });

describe("which endpoints are used", () => {
  test.each<[what: string, given: readonly SliceEndpoint[], cluster: string, local: string, serving?: string]>([
    ["none", [], "", ""],
    ["ready ones", [endpoint(A), endpoint(B, HERE)], "AB", "B"],
    ["one not ready", [endpoint(A), endpoint(B, NOT_READY)], "A", "", "A"],
    ["none is ready or serves", [endpoint(A, NOT_READY)], "", "", ""],
    ["one drains next to a ready one", [endpoint(A), endpoint(B, DRAINING)], "A", "", "AB"],
    ["all drain", [endpoint(A, DRAINING), endpoint(B, DRAINING)], "AB", ""],
    ["the one here drains, another is ready", [endpoint(A), endpoint(B, { ...HERE, ...DRAINING })], "A", "B", "AB"],
    [
      "of those here one drains, one is ready",
      [endpoint(A, { ...HERE, ...DRAINING }), endpoint(B, HERE)],
      "B",
      "B",
      "AB",
    ],
    ["all drain, one of them here", [endpoint(A, DRAINING), endpoint(B, { ...HERE, ...DRAINING })], "AB", "B"],
    [
      "one is terminating and does not serve",
      [endpoint(A, { ready: false, serving: false, terminating: true })],
      "",
      "",
      "",
    ],
    ["one serves, is not ready and does not terminate", [endpoint(A, { ready: false })], "", "", "A"],
    ["not-ready addresses are published", [endpoint(A, { serving: false })], "A", "", "A"],
    ["an endpoint without a node is not here", [{ ...NOT_READY, ready: true, address: A }], "A", ""],
  ])("%s", (_, given, cluster, local, serving = cluster) => {
    const sets = { cluster: addressesIn(cluster), local: addressesIn(local), serving: addressesIn(serving) };
    expect(setsOf(given)).toEqual({ any: cluster !== "", ...sets });
  });
});

describe("topology", () => {
  test.each<[what: string, given: readonly SliceEndpoint[], cluster: string, here?: NodeTopology]>([
    ["zone hints", [endpoint(A, zone("z1")), endpoint(B, zone("z2"))], "A"],
    ["one endpoint for two zones", [endpoint(A, zone("z1", "z2")), endpoint(B, zone("z2"))], "A"],
    ["zone hints, none for here", [endpoint(A, zone("z2")), endpoint(B, zone("z3"))], "AB"],
    ["one endpoint without a zone hint", [endpoint(A, zone("z1")), endpoint(B)], "AB"],
    [
      "an endpoint that isn't ready needs no hint",
      [endpoint(A, zone("z1")), endpoint(B, zone("z2")), endpoint(C, NOT_READY)],
      "A",
    ],
    ["this node has no zone", [endpoint(A, zone("z1")), endpoint(B, zone("z2"))], "AB", { nodeName: "node-a" }],
    ["node hints", [endpoint(A, node("node-a")), endpoint(B, node("node-b"))], "A"],
    [
      "node hints before zone hints",
      [
        endpoint(A, { ...node("node-a"), ...zone("z1") }),
        endpoint(B, { ...node("node-b"), ...zone("z1") }),
        endpoint(C, { ...node("node-c"), ...zone("z2") }),
      ],
      "A",
    ],
    [
      "node hints for others fall back on zone hints",
      [endpoint(A, { ...node("node-c"), ...zone("z1") }), endpoint(B, { ...node("node-b"), ...zone("z2") })],
      "A",
    ],
    [
      "one endpoint without a node hint: zone hints",
      [endpoint(A, { ...node("node-a"), ...zone("z2") }), endpoint(B, zone("z1"))],
      "B",
    ],
    [
      "hints of draining endpoints count for nothing",
      [endpoint(A, { ...DRAINING, ...zone("z1") }), endpoint(B, { ...DRAINING, ...zone("z2") })],
      "AB",
    ],
  ])("%s", (_, given, cluster, here) => expect(setsOf(given, here).cluster).toEqual(addressesIn(cluster)));

  test("never narrows the local set", () => {
    const given = [endpoint(A, { ...HERE, ...zone("z2") }), endpoint(B, zone("z1"))];
    expect(setsOf(given)).toMatchObject({ cluster: [B], local: [A], serving: [A, B] });
  });
});

describe("an endpoint in two slices", () => {
  const variants = [
    endpoint(A),
    endpoint(A, DRAINING),
    endpoint(A, NOT_READY),
    endpoint(A, { ready: false }),
    endpoint(A, { ready: false, serving: false, terminating: true }),
  ];

  test("is taken as the one that doesn't terminate, whichever came first", () => {
    for (const one of variants) {
      for (const other of variants) {
        const names = (a: string, b: string) =>
          toEnd(candidates([slice("web", [one], { name: a }), slice("web", [other], { name: b })], HTTP));
        const [picked] = names("a", "b");
        expect(picked?.endpoint.terminating).toBe(one.terminating && other.terminating);
        if (one.ready && !one.terminating) expect(picked?.endpoint.ready).toBe(true);
      }
    }
  });

  test("counts once", () => {
    const twice = [slice("web", [endpoint(A), endpoint(A)], { name: "a" }), slice("web", [endpoint(A)], { name: "b" })];
    expect(toEnd(candidates(twice, HTTP))).toHaveLength(1);
  });
});

describe("ports", () => {
  const slices: EndpointSlice[] = [
    slice("dns", [endpoint(A)], {
      ports: [
        { name: "dns", protocol: "UDP", port: 53 },
        { name: "dns", protocol: "TCP", port: 5353 },
        { name: "metrics", protocol: "TCP", port: 9153 },
      ],
    }),
    slice("dns", [endpoint("fd00::1")], {
      name: "dns-6",
      family: "IPv6",
      ports: [{ name: "dns", protocol: "UDP", port: 53 }],
    }),
  ];

  test.each([
    ["IPv4", "dns", "UDP", ["10.0.0.1:53"]],
    ["IPv4", "dns", "TCP", ["10.0.0.1:5353"]],
    ["IPv4", "metrics", "TCP", ["10.0.0.1:9153"]],
    ["IPv4", "metrics", "UDP", []],
    ["IPv6", "dns", "UDP", ["[fd00::1]:53"]],
    ["IPv6", "dns", "TCP", []],
  ] as const)("%s %s/%s", (family, name, protocol, keys) => {
    expect(toEnd(candidates(slices, { family, name, protocol })).map((one) => one.key)).toEqual(keys);
  });
});

test("endpoints stand in the byte order of address:port", () => {
  const address = fc.constantFrom("10.0.0.1", "10.0.0.10", "10.0.0.2", "9.0.0.1", "10.0.0.100");
  fc.assert(
    fc.property(fc.array(address), fc.array(fc.constantFrom(80, 443, 8080)), (addresses, ports) => {
      const given = slice(
        "web",
        addresses.map((one) => endpoint(one)),
        { ports: ports.map((port) => ({ name: "", protocol: "TCP", port })) },
      );
      const keys = toEnd(candidates([given], HTTP)).map((one) => one.key);
      const expected = new Set(
        addresses.flatMap((one) => ports.map((port) => Buffer.from(`${one}:${port}`))).map(String),
      );
      expect(keys).toEqual([...expected].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
    }),
  );
});

test("a health check counts distinct ready addresses here, over ports and slices, without the excluded ones", () => {
  const ports = [80, 443].map((port) => ({ name: `p${port}`, protocol: "TCP" as const, port }));
  const slices = [
    slice("web", [endpoint(A, HERE), endpoint(B, { ...HERE, ...DRAINING }), endpoint(C)], { ports, name: "a" }),
    slice("web", [endpoint(A, HERE), endpoint("10.244.0.1", HERE)], { ports, name: "b" }),
    slice("web", [endpoint("10.0.0.9", HERE)], { ports: [], name: "c" }),
    slice("web", [endpoint("fd00::1", HERE)], { ports, name: "d", family: "IPv6" }),
  ];
  expect(toEnd(countLocalReady(slices, "IPv4", "node-a", undefined))).toBe(2);
  expect(toEnd(countLocalReady(slices, "IPv4", "node-a", ({ address }) => address.startsWith("10.244.")))).toBe(1);
  expect(toEnd(countLocalReady(slices, "IPv6", "node-a", undefined))).toBe(1);
  expect(toEnd(countLocalReady(slices, "IPv4", "node-b", undefined))).toBe(1);
});

test("hints for nodes count for nothing where that is off; those for zones do", () => {
  const both = [endpoint(A, { ...node("node-a"), ...zone("z2") }), endpoint(B, { ...node("node-b"), ...zone("z1") })];
  expect(setsOf(both).cluster).toEqual([A]);
  expect(setsOf(both, { ...PLACE, nodeHints: false }).cluster).toEqual([B]);
});

const BOTH = { nodeHints: ["node-a"], zoneHints: ["z1"] };

const outcome = (endpoints: readonly SliceEndpoint[], place = PLACE) =>
  hintsOutcome([slice("web", endpoints)], HTTP, place);

describe("which hints count, and why not", () => {
  test.each<[what: string, given: readonly SliceEndpoint[], is: unknown, place?: NodeTopology]>([
    ["all have both", [endpoint(A, BOTH)], { counts: "node" }],
    [
      "hand-made slices have none",
      [endpoint(A), endpoint(B, BOTH)],
      {
        counts: "none",
        noNode: "1 of 2 ready endpoints have no hint for a node",
        noZone: "1 of 2 ready endpoints have no hint for a zone",
      },
    ],
    ["an endpoint that is not ready does not matter", [endpoint(A, BOTH), endpoint(B, NOT_READY)], { counts: "node" }],
    [
      "hints for other nodes, one for this zone",
      [endpoint(A, { nodeHints: ["node-b"], zoneHints: ["z1"] })],
      { counts: "zone", noNode: "no hint is for node node-a" },
    ],
    [
      "a node without a zone",
      [endpoint(A, { zoneHints: ["z1"] })],
      {
        counts: "none",
        noNode: "1 of 1 ready endpoints have no hint for a node",
        noZone: "the node has no zone (label topology.kubernetes.io/zone)",
      },
      { nodeName: "node-a" },
    ],
    [
      "the gate is off",
      [endpoint(A, BOTH)],
      { counts: "zone", noNode: "the feature gate PreferSameTrafficDistribution is off" },
      { ...PLACE, nodeHints: false },
    ],
    ["none ready", [endpoint(A, NOT_READY)], expect.objectContaining({ counts: "none" })],
  ])("%s", (_, given, is, place) => expect(outcome(given, place)).toEqual(is));

  test("it is what the selection does", () => {
    const hints = (names: readonly string[]) =>
      fc.option(fc.subarray([...names], { minLength: 1 }), { nil: undefined });
    const some = fc.record({
      nodeHints: hints(["node-a", "node-b"]),
      zoneHints: hints(["z1", "z2"]),
      ready: fc.boolean(),
    });
    const place = fc.record({ zone: fc.option(fc.constant("z1"), { nil: undefined }), nodeHints: fc.boolean() });
    fc.assert(
      fc.property(fc.array(some, { maxLength: 4 }), place, (given, { zone, nodeHints }) => {
        const endpoints = given.map((one, at) => {
          const fields = Object.fromEntries(Object.entries(one).filter(([, value]) => value !== undefined));
          return endpoint(`10.0.0.${at + 1}`, fields);
        });
        const here: NodeTopology = { nodeName: "node-a", zone, nodeHints };
        const filter = topologyFilter(
          endpoints.filter(({ ready }) => ready),
          here,
        );
        expect(outcome(endpoints, here).counts === "none").toBe(filter === undefined);
      }),
    );
  });
});

function fates(endpoints: readonly SliceEndpoint[], excludes?: (endpoint: FilterEndpoint) => boolean) {
  return endpointFates([slice("web", endpoints)], { ...HTTP, excludes }, PLACE);
}

describe("why an endpoint is used or not", () => {
  test.each<[what: string, given: readonly SliceEndpoint[], cluster: string, local: string]>([
    ["ready elsewhere", [endpoint(A, { nodeName: "node-b" })], "ready", "on node-b"],
    ["ready here", [endpoint(A, HERE)], "ready", "ready"],
    ["not ready", [endpoint(A, { ...HERE, ...NOT_READY })], "not ready", "not ready"],
    [
      "hinted for another zone",
      [endpoint(A, { ...HERE, zoneHints: ["z2"] }), endpoint(B, { zoneHints: ["z1"] })],
      "hinted for zones z2, not for node-a in zone z1",
      "ready",
    ],
    [
      "draining here, the only one here",
      [endpoint(A, { ...HERE, ...DRAINING }), endpoint(B)],
      "terminating; other endpoints are ready",
      "terminating but still serving; no endpoint is ready",
    ],
  ])("%s", (_, given, cluster, local) => {
    expect(fates(given)[0]).toMatchObject({ cluster: { why: cluster }, local: { why: local } });
  });

  test("an excluded one is another network's, whatever its state", () => {
    const [own, other] = fates([endpoint(A), endpoint("10.1.0.1", NOT_READY)], ({ address }) => address === "10.1.0.1");
    expect(own?.cluster).toEqual({ in: true, why: "ready" });
    expect(other?.cluster.why).toMatch(/excluded/);
    expect(other?.cluster.in || other?.local.in).toBe(false);
  });
});

/** Words that go with being in a set; all others go with being left out. */
const INSIDE = /^(ready|terminating but still serving)/;

const endpoints = fc.array(
  fc
    .record({
      last: fc.integer({ min: 1, max: 5 }),
      state: fc.record({ ready: fc.boolean(), serving: fc.boolean(), terminating: fc.boolean() }),
      nodeName: fc.option(fc.constantFrom("node-a", "node-b"), { nil: undefined }),
      zoneHints: fc.option(fc.subarray(["z1", "z2"]), { nil: undefined }),
      nodeHints: fc.option(fc.subarray(["node-a", "node-b"]), { nil: undefined }),
    })
    .map(({ last, state, ...rest }) => {
      const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
      return endpoint(`10.0.0.${last}`, { ...state, ...given });
    }),
  { maxLength: 8 },
);

test("the words go with the selection, in every state", () => {
  fc.assert(
    fc.property(endpoints, (given) => {
      for (const { cluster, local } of fates(given)) {
        expect(INSIDE.test(cluster.why), cluster.why).toBe(cluster.in);
        expect(INSIDE.test(local.why), local.why).toBe(local.in);
      }
    }),
    { numRuns: runs(500) },
  );
});
