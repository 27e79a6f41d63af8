import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { endpointFates, type FilterEndpoint, type SliceEndpoint } from "../src/index.ts";
import { DRAINING, endpoint, HERE, NOT_READY, slice } from "./objects.ts";

const PLACE = { nodeName: "node-a", zone: "z1" };
const HTTP = { family: "IPv4", name: "", protocol: "TCP" } as const;

function fates(endpoints: readonly SliceEndpoint[], excludes?: (endpoint: FilterEndpoint) => boolean) {
  return endpointFates([slice("web", endpoints)], { ...HTTP, excludes }, PLACE);
}

describe("why an endpoint is used or not", () => {
  test.each<{ case: string; given: readonly SliceEndpoint[]; cluster: string; local: string }>([
    {
      case: "ready elsewhere",
      given: [endpoint("10.0.0.1", { nodeName: "node-b" })],
      cluster: "ready",
      local: "on node-b",
    },
    { case: "ready here", given: [endpoint("10.0.0.1", HERE)], cluster: "ready", local: "ready" },
    {
      case: "not ready",
      given: [endpoint("10.0.0.1", { ...HERE, ...NOT_READY })],
      cluster: "not ready",
      local: "not ready",
    },
    {
      case: "hinted for another zone",
      given: [endpoint("10.0.0.1", { ...HERE, zoneHints: ["z2"] }), endpoint("10.0.0.2", { zoneHints: ["z1"] })],
      cluster: "hinted for zones z2, not for node-a in zone z1",
      local: "ready",
    },
    {
      case: "draining here, the only one here",
      given: [endpoint("10.0.0.1", { ...HERE, ...DRAINING }), endpoint("10.0.0.2")],
      cluster: "terminating; other endpoints are ready",
      local: "terminating but still serving; no endpoint is ready",
    },
  ])("$case", ({ given, cluster, local }) => {
    expect(fates(given)[0]).toMatchObject({ cluster: { why: cluster }, local: { why: local } });
  });

  test("an excluded one is another network's, whatever its state", () => {
    const [own, other] = fates(
      [endpoint("10.0.0.1"), endpoint("10.1.0.1", NOT_READY)],
      ({ address }) => address === "10.1.0.1",
    );
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
