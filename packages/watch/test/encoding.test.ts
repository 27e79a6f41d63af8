import {
  encodeEvent,
  encodeObject,
  fail,
  type LightApiServer,
  line,
  type SeenRequest,
} from "@fairlead/testkit/api-server";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { lineSplitter } from "../src/api/events.ts";
import { listParser } from "../src/api/lists.ts";
import type { SourceReport } from "../src/index.ts";
import { itemsOf, jsonObjects } from "../src/manifests/parse.ts";
import { collected } from "../src/manifests/snapshot.ts";
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

/** Cuts bytes into chunks, wherever it falls: in the middle of a character, of a line end, of nothing. */
function cut(bytes: Uint8Array, at: readonly number[]): Uint8Array[] {
  const places = [0, ...at.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, i) => bytes.subarray(places[i], end));
}

const places = fc.array(fc.nat(), { maxLength: 12 });

test("lines are the same however they arrive; what has no end is no line", () => {
  const line = fc.string({ unit: "binary" }).map((text) => text.replace(/\s/g, "x"));
  fc.assert(
    fc.property(fc.array(line), line, fc.constantFrom("\n", "\r\n"), places, (lines, rest, end, at) => {
      const bytes = Buffer.from(lines.map((one) => `${one}${end}`).join("") + rest);
      const split = lineSplitter();
      const found = cut(bytes, at).flatMap((chunk) => [...split(chunk)]);
      expect(found.map(({ text, tooMuch }) => tooMuch ?? text)).toEqual(
        lines.filter((one) => one !== "").map((one) => Buffer.from(one).toString()),
      );
    }),
  );
});

test("a line that is too long is passed over at the cost of its bytes, and the next one is read", () => {
  const split = lineSplitter(100);
  const lines = ["x".repeat(60), "x".repeat(60), "y\nnext\n"].flatMap((part) => [...split(Buffer.from(part))]);
  expect(lines.map(({ tooMuch }) => tooMuch)).toEqual(["larger than 0 MiB", undefined]);
  expect(lines[0]?.text).toMatch(/^x+$/);
  expect(lines[1]?.text).toBe("next");
});

test("a list is the same however it arrives", () => {
  const item = fc.oneof(
    fc.record({ metadata: fc.record({ name: fc.string() }), items: fc.jsonValue() }),
    fc.jsonValue(),
  );
  fc.assert(
    fc.property(fc.array(item), fc.option(fc.string({ minLength: 1 })), places, (items, next, at) => {
      const metadata = { resourceVersion: "7", ...(next === null ? {} : { continue: next }) };
      const parser = listParser();
      const bytes = Buffer.from(JSON.stringify({ kind: "List", metadata, items }, null, 1));
      const found = cut(bytes, at).flatMap((chunk) => [...parser.write(chunk)]);
      expect(found).toEqual(JSON.parse(JSON.stringify(items)).map((raw: unknown) => ({ raw })));
      expect(parser.end()).toEqual({ resourceVersion: "7", next: next ?? undefined });
    }),
  );
});

test("the objects of JSON are what JSON.parse gives, whatever is called items in it", async () => {
  const element = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.record({ kind: fc.constantFrom("List", "X", "XList"), items: fc.array(fc.jsonValue({ maxDepth: 2 })) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(element), fc.nat(3), async (elements, indent) => {
      const text = JSON.stringify(elements, null, indent);
      expect(await collected(jsonObjects(Buffer.from(text)))).toEqual(itemsOf(JSON.parse(text)));
    }),
  );
});

test("JSON of several slices doesn't hold the event loop", async () => {
  const value = { kind: "List", items: Array.from({ length: 40_000 }, (_, i) => ({ i, text: `number ${i}` })) };
  let turns = 0;
  let counting = true;
  const count = () => {
    turns++;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  expect(await collected(jsonObjects(Buffer.from(JSON.stringify(value))))).toEqual(value.items);
  counting = false;
  expect(turns).toBeGreaterThan(1);
});
