import { fieldsOf } from "@fairlead/base";
import { ClusterState, decodeEndpointSlice, decodeService, type EndpointFate } from "@fairlead/core";
import type { Flow } from "@fairlead/inspect";
import { endpointSlice, node, type RawObject } from "@fairlead/testkit";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { TrafficWay } from "../src/index.ts";
import { searchServices } from "../src/model/rows.ts";
import { wayPicture, waysOf } from "../src/ways.ts";
import { Events, LiveObjects, manyServices, type SentEvent, shop } from "./support/objects.ts";
import { addressOf, cookieOf, openConsole, setupOf, visit } from "./support/page.ts";

/** FAIRLEAD_RUNS=20 makes them 2,000. */
const SERVICES = runs(100);
const [EAST, WEST] = [
  node("node-a", { zone: "east", addresses: ["10.201.0.10"] }),
  node("node-a", { zone: "west", addresses: ["10.201.0.10"] }),
];

const isWhole = ({ name }: SentEvent) => name === "whole";
const rowsOf = ({ data: { rows } }: SentEvent): readonly Record<string, unknown>[] => (Array.isArray(rows) ? rows : []);

/** As a kubelet writes it: a later time, and nothing that a proxy reads. */
function heartbeat(at: number): RawObject {
  const lastHeartbeatTime = new Date(at * 1_000).toISOString();
  return {
    ...EAST,
    status: { ...fieldsOf(EAST["status"]), conditions: [{ type: "Ready", status: "True", lastHeartbeatTime }] },
  };
}

function labeled(value: string): RawObject {
  return { ...EAST, metadata: { ...EAST.metadata, labels: { ...EAST.metadata.labels, note: value } } };
}

async function scene() {
  const objects = new LiveObjects([EAST, ...manyServices(SERVICES)]);
  const running = await openConsole(objects, "", { setup: setupOf(["--cluster-cidr=10.144.0.0/15"]) });
  const { base } = addressOf(running.url);
  const cookie = await cookieOf(running.url);
  const open = () => Events.open(base, { cookie });
  return {
    objects,
    running,
    open,
    /** What a page that is opened now is given. */
    begin: async () => {
      await using events = await open();
      const all = await events.until(isWhole);
      const services = all.filter(({ name }) => name === "services").flatMap(rowsOf);
      return { services, nodes: all.find(({ name }) => name === "begin")?.data["nodes"] };
    },
    /** The endpoints that the node's plan uses for the first service. */
    explained: async (): Promise<readonly string[]> => {
      const { text } = await visit(`${base}api/service?target=many/service-00000`, { headers: { cookie } });
      const { endpoints } = JSON.parse(text).explanation.families[0].ports[0];
      return endpoints.flatMap((one: EndpointFate) => (one.cluster.in ? [one.address] : []));
    },
  };
}

describe("the list stays whole through", () => {
  test.each<[string, (objects: LiveObjects) => Promise<void>]>([
    [
      "40 heartbeats",
      async (objects) => {
        for (let at = 0; at < 40; at += 1) await objects.put(heartbeat(at));
      },
    ],
    ["an unrelated label", (objects) => objects.put(labeled("any"))],
    ["another zone", (objects) => objects.put(WEST)],
    ["the Node's deletion", (objects) => objects.remove(EAST)],
    [
      "its deletion and creation",
      async (objects) => {
        await objects.remove(EAST);
        await objects.put(WEST);
      },
    ],
  ])("%s: for a page that is opened then, and for one that is open", async (_what, act) => {
    const { objects, running, open, begin } = await scene();
    await using _running = running;
    await using events = await open();
    await events.until(isWhole);
    await act(objects);
    expect((await begin()).services).toHaveLength(SERVICES);
    const none = { namespace: "many", service: "service-00000", family: "IPv4", ports: [], endpoints: [] } as const;
    await objects.put(endpointSlice("service-00000-1", none));
    const seen = await events.until(({ name }) => name === "services");
    expect(seen.at(-1)?.data).toMatchObject({ rows: [{ service: "many/service-00000", ready: 0 }], gone: [] });
    expect((await begin()).services).toHaveLength(SERVICES);
  });
});

test("a heartbeat is no news for a page", async () => {
  const { objects, running, open } = await scene();
  await using _running = running;
  await using events = await open();
  await events.until(isWhole);
  await objects.put(heartbeat(1));
  await objects.put(WEST);
  const [first] = await events.until(({ name }) => name === "nodes");
  expect(first?.data["rows"]).toMatchObject([{ node: "node-a", zone: "west" }]);
});

test("a deleted Node is reported as such, also to a page that is opened then, until it is there again", async () => {
  const { objects, running, open, begin } = await scene();
  await using _running = running;
  await using events = await open();
  await events.until(isWhole);
  await objects.remove(EAST);
  expect((await events.until(({ name }) => name === "nodes")).at(-1)?.data).toMatchObject({
    rows: [{ node: "node-a", deleted: true }],
    gone: [],
  });
  expect((await begin()).nodes).toMatchObject([{ node: "node-a", deleted: true }]);
  await objects.put(EAST);
  expect((await events.until(({ name }) => name === "nodes")).at(-1)?.data["rows"]).toEqual([
    { node: "node-a", zone: "east", addresses: ["10.201.0.10"] },
  ]);
});

test("what a plan reads of its Node counts from the next question on", async () => {
  const { objects, running, explained } = await scene();
  await using _running = running;
  const endpoints = [
    { address: "10.144.0.0", nodeName: "node-a", zoneHints: ["east"] },
    { address: "10.145.0.0", nodeName: "node-b", zoneHints: ["west"] },
  ];
  const ports = [{ port: 8080 }];
  const hinted = { namespace: "many", service: "service-00000", family: "IPv4", ports, endpoints } as const;
  await objects.put(endpointSlice("service-00000-1", hinted));
  expect(await explained()).toEqual(["10.144.0.0"]);
  await objects.put(WEST);
  expect(await explained()).toEqual(["10.145.0.0"]);
  // A proxy whose Node is gone goes on by what it knew.
  await objects.remove(WEST);
  expect(await explained()).toEqual(["10.145.0.0"]);
});

const state = new ClusterState();
for (const object of shop) {
  const service = object.kind === "Service" ? decodeService(object).object : undefined;
  if (service !== undefined) state.upsertService(service);
  const slice = object.kind === "EndpointSlice" ? decodeEndpointSlice(object).object : undefined;
  if (slice !== undefined) state.upsertSlice(slice);
}

test.each([
  ["a part of a name", "ngin", ["default/nginx-ovn"]],
  ["capitals", "WEB", ["shop/web"]],
  ["a namespace", "shop/", ["shop/web"]],
  ["a ClusterIP", "10.96.0.12", ["default/no-endpoint"]],
  ["a ClusterIP and port", "10.96.0.12:80", ["default/no-endpoint"]],
  ["a ClusterIP and a port that it has not", "10.96.0.12:81", []],
  ["a load balancer's address", "203.0.113.9", ["shop/web"]],
  ["a node port", "30080", ["shop/web"]],
  ["a pod's address", "10.144.2.7", ["shop/web"]],
  ["the beginning of addresses", "10.244.0.", ["default/both", "default/nginx-ovn"]],
  ["nothing that is there", "nope", []],
  ["a pattern, which is only text", ".*", []],
])("%s", (_what, text, found) => {
  expect(searchServices(state, text)).toEqual(found);
});

test("nothing finds everything, in order", () => {
  expect(searchServices(state, " ")).toEqual([
    "default/both",
    "default/nginx-ovn",
    "default/no-endpoint",
    "default/stray",
    "shop/web",
  ]);
});

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
