import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hintsOutcome, type SliceEndpoint } from "../src/index.ts";
import { type NodeTopology, topologyFilter } from "../src/select/topology.ts";
import { endpoint, NOT_READY, slice } from "./objects.ts";

const PLACE: NodeTopology = { nodeName: "node-a", zone: "z1" };
const HTTP = { family: "IPv4", name: "", protocol: "TCP" } as const;
const BOTH = { nodeHints: ["node-a"], zoneHints: ["z1"] };

const outcome = (endpoints: readonly SliceEndpoint[], place = PLACE) =>
  hintsOutcome([slice("web", endpoints)], HTTP, place);

describe("which hints count, and why not", () => {
  test.each<{ case: string; given: readonly SliceEndpoint[]; place?: NodeTopology; is: unknown }>([
    { case: "all have both", given: [endpoint("10.0.0.1", BOTH)], is: { counts: "node" } },
    {
      case: "hand-made slices have none",
      given: [endpoint("10.0.0.1"), endpoint("10.0.0.2", BOTH)],
      is: {
        counts: "none",
        noNode: "1 of 2 ready endpoints have no hint for a node",
        noZone: "1 of 2 ready endpoints have no hint for a zone",
      },
    },
    {
      case: "an endpoint that is not ready does not matter",
      given: [endpoint("10.0.0.1", BOTH), endpoint("10.0.0.2", NOT_READY)],
      is: { counts: "node" },
    },
    {
      case: "hints for other nodes, one for this zone",
      given: [endpoint("10.0.0.1", { nodeHints: ["node-b"], zoneHints: ["z1"] })],
      is: { counts: "zone", noNode: "no hint is for node node-a" },
    },
    {
      case: "a node without a zone",
      given: [endpoint("10.0.0.1", { zoneHints: ["z1"] })],
      place: { nodeName: "node-a" },
      is: {
        counts: "none",
        noNode: "1 of 1 ready endpoints have no hint for a node",
        noZone: "the node has no zone (label topology.kubernetes.io/zone)",
      },
    },
    {
      case: "the gate is off",
      given: [endpoint("10.0.0.1", BOTH)],
      place: { ...PLACE, nodeHints: false },
      is: { counts: "zone", noNode: "the feature gate PreferSameTrafficDistribution is off" },
    },
    { case: "none ready", given: [endpoint("10.0.0.1", NOT_READY)], is: expect.objectContaining({ counts: "none" }) },
  ])("$case", ({ given, place, is }) => expect(outcome(given, place)).toEqual(is));

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
