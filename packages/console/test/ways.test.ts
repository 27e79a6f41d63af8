import type { Flow } from "@fairlead/inspect";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { TrafficWay } from "../src/index.ts";
import { wayPicture, waysOf } from "../src/ways.ts";

const flow = (service: string, more: Partial<Flow> = {}): Flow => ({
  family: "IPv4",
  protocol: "TCP",
  client: { address: "10.144.1.9", port: 1_024 },
  frontend: { kind: "cluster-ip", address: "10.96.0.10", port: 80 },
  service: `shop/${service}`,
  port: "",
  owner: "ours",
  endpoint: { address: "10.144.1.5", port: 8080, condition: "ready", nodeName: "node-a" },
  replied: true,
  ...more,
});

test("connections are summed up by kind of frontend, service and node; what hangs is apart", () => {
  const gone = { address: "10.144.1.6", port: 8080, condition: "gone" } as const;
  const counted = { sent: { bytes: 1, packets: 1 }, received: { bytes: 9, packets: 1 } };
  const { endpoint: _none, ...untranslated } = flow("api");
  expect(waysOf([flow("web"), flow("web", { endpoint: gone }), flow("web", counted), untranslated])).toEqual([
    { frontend: "cluster-ip", service: "shop/web", node: "node-a", gone: false, connections: 2, bytes: 10 },
    { frontend: "cluster-ip", service: "shop/web", node: "", gone: true, connections: 1 },
    { frontend: "cluster-ip", service: "shop/api", node: "", gone: false, connections: 1 },
  ]);
});

test("of many services those with few connections come as one, and nothing is lost", () => {
  const ways = waysOf(Array.from({ length: 300 }, (_, at) => flow(`s-${at % 200}`)));
  expect(ways).toHaveLength(51);
  expect(ways.at(-1)).toMatchObject({ service: "", connections: 200 });
  expect(ways.reduce((sum, { connections }) => sum + connections, 0)).toBe(300);
});

const someWays = fc.array(
  fc.record({
    frontend: fc.constantFrom<TrafficWay["frontend"]>("cluster-ip", "node-port", "load-balancer"),
    service: fc.integer({ min: 0, max: 20 }).map((at) => (at === 0 ? ("" as const) : (`shop/${at}` as const))),
    node: fc.integer({ min: 0, max: 12 }).map((at) => (at === 0 ? "" : `node-${at}`)),
    gone: fc.boolean(),
    connections: fc.integer({ min: 1, max: 10_000 }),
  }),
);

test("whatever comes, each column has all connections, its boxes lie apart, and the bands stay inside of them", () => {
  fc.assert(
    fc.property(someWays, (ways) => {
      const { columns, bands, height } = wayPicture(ways);
      const all = ways.reduce((sum, { connections }) => sum + connections, 0);
      for (const boxes of columns) {
        expect(boxes.length).toBeLessThanOrEqual(10);
        expect(boxes.reduce((sum, { connections }) => sum + connections, 0)).toBe(all);
        for (const [at, box] of boxes.entries()) {
          const before = boxes[at - 1];
          expect(box.top).toBeGreaterThanOrEqual(before === undefined ? 0 : before.top + before.height);
          expect(box.top + box.height).toBeLessThanOrEqual(height);
        }
      }
      const inside = (at: number, width: number, boxes: (typeof columns)[number]) =>
        boxes.some(({ top, height }) => at >= top - 1e-6 && at + width <= top + height + 1e-6);
      for (const { from, to, width } of bands[0]) {
        expect([inside(from, width, columns[0]), inside(to, width, columns[1])]).toEqual([true, true]);
      }
      for (const { from, to, width } of bands[1]) {
        expect([inside(from, width, columns[1]), inside(to, width, columns[2])]).toEqual([true, true]);
      }
    }),
  );
});
