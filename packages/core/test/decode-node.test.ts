import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeEndpointSlice, decodeNode, decodeService, decodeServiceCIDR } from "../src/index.ts";

test("reads the own node: internal addresses before external ones", () => {
  const decoded = decodeNode({
    metadata: { name: "node-a", labels: { "topology.kubernetes.io/zone": "z1" } },
    spec: { podCIDR: "10.144.1.0/24", podCIDRs: ["10.144.1.0/24", "FD00:144::/64"], taints: [{ key: "other" }] },
    status: {
      addresses: [
        { type: "Hostname", address: "node-a" },
        { type: "ExternalIP", address: "192.0.2.10" },
        { type: "InternalIP", address: "10.201.0.10" },
        { type: "InternalIP", address: "nonsense" },
        { type: "InternalIP", address: "fd00:201::10" },
      ],
    },
  });
  expect(decoded.object).toEqual({
    name: "node-a",
    zone: "z1",
    addresses: ["10.201.0.10", "fd00:201::10", "192.0.2.10"],
    podCIDRs: ["10.144.1.0/24", "fd00:144::/64"],
    goingAway: false,
  });
  expect(decoded.problems.map((problem) => problem.field)).toEqual(["status.addresses[3].address"]);
});

test.each([
  ["a deletion time", { metadata: { name: "a", deletionTimestamp: "2026-01-01T00:00:00Z" } }, true],
  [
    "the autoscaler's taint",
    { metadata: { name: "a" }, spec: { taints: [{ key: "ToBeDeletedByClusterAutoscaler" }] } },
    true,
  ],
  ["neither", { metadata: { name: "a" } }, false],
])("a node with %s", (_, raw, goingAway) => expect(decodeNode(raw).object?.goingAway).toBe(goingAway));

test("a ServiceCIDR keeps its good CIDRs", () => {
  const decoded = decodeServiceCIDR({ metadata: { name: "kubernetes" }, spec: { cidrs: ["10.96.0.1/12", "x"] } });
  expect(decoded.object).toEqual({ name: "kubernetes", cidrs: ["10.96.0.0/12"] });
  expect(decoded.problems).toHaveLength(1);
});

test("no JSON makes a decoder throw", () => {
  const field = fc.constantFrom("metadata", "spec", "status", "labels", "ports", "endpoints", "addresses", "clusterIP");
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 5 },
      fc.jsonValue(),
      fc.constantFrom("10.0.0.1", "::1", "None", null, 80),
      fc.dictionary(field, tie("tree")),
      fc.array(tie("tree"), { maxLength: 3 }),
    ),
  }));
  fc.assert(
    fc.property(tree, (raw) => {
      for (const decode of [decodeService, decodeEndpointSlice, decodeNode, decodeServiceCIDR]) {
        expect(Array.isArray(decode(raw).problems)).toBe(true);
      }
    }),
  );
});
