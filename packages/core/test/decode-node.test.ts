import { parseAddressLeniently } from "@fairlead/base";
import fc from "fast-check";
import { expect, test } from "vitest";
import { specialKind } from "../src/decode/fields.ts";
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

test.each([
  ["0.0.0.0", "unspecified"],
  ["127.255.0.1", "loopback"],
  ["169.254.169.254", "link-local"],
  ["224.0.0.1", "multicast"],
  ["239.255.255.250", "multicast"],
  ["0.0.0.1", "reserved"],
  ["0.255.255.255", "reserved"],
  ["1.0.0.0", undefined],
  ["223.255.255.255", undefined],
  ["240.0.0.0", "reserved"],
  ["255.255.255.254", "reserved"],
  ["255.255.255.255", "broadcast"],
  ["10.0.0.1", undefined],
  ["169.253.0.1", undefined],
  ["::", "unspecified"],
  ["::1", "loopback"],
  ["fe80::1", "IPv6 link-local"],
  ["febf::1", "IPv6 link-local"],
  ["::ffff:240.0.0.1", "reserved"],
  ["ff02::1", "multicast"],
  ["fec0::1", undefined],
  ["fd00::1", undefined],
  ["ff::1", undefined],
])("%s is %s", (text, kind) => {
  const address = parseAddressLeniently(text);
  expect(address && specialKind(address)).toBe(kind);
});
