import {
  encodeEvent,
  encodeObject,
  fail,
  type LightApiServer,
  line,
  type SeenRequest,
} from "@fairlead/testkit/api-server";
import { describe, expect, test } from "vitest";
import type { SourceReport } from "../src/index.ts";
import {
  CIDRS_PATH,
  Consumer,
  endAfterEach,
  fakeApi,
  following,
  NODES_PATH,
  run,
  SERVICES_PATH,
  SLICES_PATH,
  service,
} from "./support/fake-api.ts";

endAfterEach();

const IN_PROTOBUF = { protobuf: true };
const isWatch = ({ query }: SeenRequest) => query.get("watch") === "true";
const encodings = (reports: readonly SourceReport[]) => reports.filter(({ type }) => type === "encoding");
const SERVICES = { type: "encoding", resource: "services" } as const;

describe.each(["watchList", "list"] as const)("objects by %s", (how) => {
  test("come as protobuf, and so do changes, bookmarks and the end of the version", async () => {
    const { api, consumer, reports } = await following((fake) => {
      fake.watchList = how === "watchList";
      fake.store.put(SERVICES_PATH, service("a"));
    }, IN_PROTOBUF);
    expect(consumer.keys()).toEqual(["default/a"]);
    api.store.put(SERVICES_PATH, service("a", { clusterIP: "10.96.0.10" }));
    api.store.put(SERVICES_PATH, service("b"));
    await consumer.until(() => consumer.state.has("default/b"));
    expect(consumer.state.get("default/a")?.spec).toEqual({ clusterIP: "10.96.0.10" });
    api.store.put("/elsewhere", service("x"));
    api.bookmark();
    api.store.delete(SERVICES_PATH, "default/a");
    await consumer.until(() => !consumer.state.has("default/a"));
    api.store.compact();
    api.store.put(SERVICES_PATH, service("c"));
    api.endWatches();
    await consumer.until(() => consumer.state.has("default/c"));
    expect(encodings(reports)).toEqual([{ ...SERVICES, encoding: "protobuf" }]);
    expect(reports.filter(({ type }) => type === "badObject" || type === "failing")).toEqual([]);
    expect(new Set(api.requests.map(({ headers }) => headers.accept))).toEqual(
      new Set(["application/vnd.kubernetes.protobuf, application/json"]),
    );
  });
});

test("all resources come as protobuf", async () => {
  const { api, server } = await fakeApi();
  api.store.put(SLICES_PATH, { metadata: { name: "s", namespace: "default" }, addressType: "IPv4" });
  api.store.put(NODES_PATH, { metadata: { name: "node-a" }, spec: { podCIDR: "10.1.0.0/24" } });
  api.store.put(CIDRS_PATH, { metadata: { name: "c" }, spec: { cidrs: ["10.96.0.0/12"] } });
  const [slices, node, cidrs] = [new Consumer(), new Consumer(), new Consumer()];
  const to = { endpointSlices: slices.subscription, node: node.subscription, serviceCIDRs: cidrs.subscription };
  const { reports } = run(server, to, IN_PROTOBUF);
  for (const consumer of [slices, node, cidrs]) await consumer.until(() => consumer.synced > 0);
  expect(slices.keys()).toEqual(["default/s"]);
  expect(node.state.get("/node-a")?.spec).toEqual({ podCIDR: "10.1.0.0/24" });
  expect(cidrs.state.get("/c")?.spec).toEqual({ cidrs: ["10.96.0.0/12"] });
  expect(encodings(reports)).toHaveLength(3);
});

test("a server that has no protobuf gives JSON", async () => {
  const { api, consumer, reports } = await following((fake) => {
    fake.protobuf = false;
  }, IN_PROTOBUF);
  api.store.put(SERVICES_PATH, service("b"));
  await consumer.until(() => consumer.state.has("default/b"));
  expect(encodings(reports)).toEqual([{ ...SERVICES, encoding: "json" }]);
});

test.each([406, 415])("a server that answers %i is asked for JSON at once, and from then on", async (code) => {
  const { api, consumer, reports } = await following((fake) => {
    fake.intercept((_request, response) => !!fail(response, code, "", "not here"));
    fake.store.put(SERVICES_PATH, service("a"));
  }, IN_PROTOBUF);
  api.endWatches();
  api.store.put(SERVICES_PATH, service("b"));
  await consumer.until(() => consumer.state.has("default/b"));
  const [, ...later] = api.requests.map(({ headers }) => headers.accept);
  expect(new Set(later)).toEqual(new Set(["application/json"]));
  expect(encodings(reports)).toEqual([{ ...SERVICES, encoding: "json", why: `${code} not here` }]);
  expect(reports.some(({ type }) => type === "retry" || type === "failing")).toBe(false);
});

/** Answers the next watch with these bytes as protobuf, and nothing after them. */
function answerWatch(api: LightApiServer, ...frames: readonly Uint8Array[]): void {
  api.intercept((request, response) => {
    if (!isWatch(request)) return false;
    response.writeHead(200, { "content-type": "application/vnd.kubernetes.protobuf;stream=watch" });
    response.write(Buffer.concat(frames));
    return true;
  });
}

test.each([
  ["lines of JSON", Buffer.from(line("ADDED", service("ghost")))],
  ["a frame that is no event", Uint8Array.of(0, 0, 0, 2, 0xff, 0xff)],
  ["another kind", encodeEvent("ADDED", encodeObject("v1", "Node", { metadata: { name: "n", resourceVersion: "1" } }))],
])("%s in a watch of protobuf: JSON from then on", async (_what, bytes) => {
  const { api, server } = await fakeApi();
  api.store.put(SERVICES_PATH, service("a"));
  answerWatch(api, bytes);
  const consumer = new Consumer();
  const { reports } = run(server, { services: consumer.subscription }, IN_PROTOBUF);
  await consumer.until(() => consumer.synced > 0);
  expect(consumer.keys()).toEqual(["default/a"]);
  expect(encodings(reports)).toEqual([
    { ...SERVICES, encoding: "protobuf" },
    { ...SERVICES, encoding: "json", why: expect.stringMatching(/^the watch is not/) },
  ]);
});

test("an object that can't be read is passed over and reported once, in lists and watches", async () => {
  const { api, server } = await fakeApi();
  const broken = { metadata: { name: "broken", namespace: "default", resourceVersion: "5" }, spec: { type: "\u0001" } };
  const bytes = (of: object) => Buffer.from(encodeObject("v1", "Service", of));
  // Text that is no UTF-8 anymore.
  const damaged = Buffer.from(bytes(broken).toString("latin1").replace("\u0001", "\u00ff"), "latin1");
  const good = (name: string, version: string) =>
    bytes({ ...service(name), metadata: { name, namespace: "default", resourceVersion: version } });
  const annotations = { "k8s.io/initial-events-end": "true" };
  answerWatch(
    api,
    encodeEvent("ADDED", good("a", "4")),
    encodeEvent("ADDED", damaged),
    encodeEvent("BOOKMARK", bytes({ metadata: { resourceVersion: "6", annotations } })),
    encodeEvent("MODIFIED", damaged),
    encodeEvent("ADDED", good("b", "7")),
  );
  const consumer = new Consumer();
  const { reports } = run(server, { services: consumer.subscription }, IN_PROTOBUF);
  await consumer.until(() => consumer.state.has("default/b"));
  expect(consumer.keys()).toEqual(["default/a", "default/b"]);
  expect(reports.filter(({ type }) => type === "badObject")).toEqual([
    { type: "badObject", resource: "services", key: "default/broken", error: expect.any(String) },
  ]);
  expect(encodings(reports)).toHaveLength(1);
});

test("an object that has become too large stays as it was, and is reported once", async () => {
  const { api, consumer, reports } = await following(
    ({ store }) => store.put(SERVICES_PATH, service("a")),
    IN_PROTOBUF,
  );
  api.store.put(SERVICES_PATH, service("a", { selector: { filler: "x".repeat(9 * 2 ** 20) } }));
  api.store.put(SERVICES_PATH, service("b"));
  await consumer.until(() => consumer.state.has("default/b"));
  api.watchList = false;
  api.store.compact();
  api.store.put(SERVICES_PATH, service("c"));
  api.endWatches();
  await consumer.until(() => consumer.state.has("default/c"));
  expect(consumer.keys()).toEqual(["default/a", "default/b", "default/c"]);
  expect(reports.filter(({ type }) => type === "badObject")).toEqual([
    { type: "badObject", resource: "services", key: "default/a", error: "larger than 8 MiB" },
  ]);
  api.store.delete(SERVICES_PATH, "default/a");
  await consumer.until(() => !consumer.state.has("default/a"));
});
