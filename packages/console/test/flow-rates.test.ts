import type { Flow } from "@fairlead/inspect";
import fc from "fast-check";
import { expect, test } from "vitest";
import { FlowRates } from "../src/index.ts";

const flow = (port: number, bytes?: number): Flow => ({
  family: "IPv4",
  protocol: "TCP",
  client: { address: "10.144.1.9", port },
  frontend: { kind: "cluster-ip", address: "10.96.0.10", port: 80 },
  service: "shop/web",
  port: "http",
  owner: "ours",
  replied: true,
  ...(bytes !== undefined && { sent: { bytes, packets: 1 }, received: { bytes, packets: 1 } }),
});

test("connections that are new, and what all have carried since the look before", () => {
  const rates = new FlowRates();
  expect(rates.take("node-a", [flow(1, 100), flow(2, 10)], 1_000)).toBeUndefined();
  expect(rates.take("node-a", [flow(1, 150), flow(3, 7)], 3_000)).toEqual({ ms: 2_000, opened: 1, bytes: 114 });
  // Another one from the same port has carried less.
  expect(rates.take("node-a", [flow(1, 20), flow(3, 7)], 5_000)).toEqual({ ms: 2_000, opened: 1, bytes: 40 });
  expect(rates.take("node-a", [], 7_000)).toEqual({ ms: 2_000, opened: 0, bytes: 0 });
});

test("a kernel that does not count bytes", () => {
  const rates = new FlowRates();
  rates.take("node-a", [flow(1)], 0);
  expect(rates.take("node-a", [flow(1), flow(2)], 2_000)).toEqual({ ms: 2_000, opened: 1 });
});

test("after a long pause it begins anew, and what is looked at apart is counted apart", () => {
  const rates = new FlowRates();
  rates.take("node-a", [], 0);
  expect(rates.take("node-a", [flow(1, 1)], 60_000)).toBeUndefined();
  expect(rates.take("node-a shop/web", [flow(1, 1)], 61_000)).toBeUndefined();
  expect(rates.take("node-a", [flow(1, 1)], 62_000)).toEqual({ ms: 2_000, opened: 0, bytes: 0 });
  for (let node = 0; node < 8; node += 1) rates.take(`node ${node}`, [], 62_000);
  expect(rates.take("node-a", [], 63_000)).toBeUndefined();
});

test("whatever comes and goes, as many are opened as were not there", () => {
  const ports = fc.uniqueArray(fc.integer({ min: 1, max: 20 }));
  fc.assert(
    fc.property(ports, ports, (before, after) => {
      const rates = new FlowRates();
      rates.take(
        "n",
        before.map((port) => flow(port, 5)),
        0,
      );
      const now = rates.take(
        "n",
        after.map((port) => flow(port, 9)),
        1_000,
      );
      const fresh = after.filter((port) => !before.includes(port)).length;
      expect(now).toEqual({ ms: 1_000, opened: fresh, bytes: fresh * 18 + (after.length - fresh) * 8 });
    }),
  );
});
