import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { VirtualClock } from "@fairlead/base/testing";
import {
  type Excess,
  encodeEvent,
  encodeObject,
  hugeEvent,
  hugeList,
  type LightApiServer,
  line,
  type SeenRequest,
} from "@fairlead/testkit/api-server";
import { expect, test } from "vitest";
import { Consumer, endAfterEach, fakeApi, following, run, SERVICES_PATH, service } from "./support/fake-api.ts";
import { followElsewhere } from "./support/peak-memory.ts";

endAfterEach();

/** The whole attack is 700 MB; less shows the same, as nothing that grows with it may be kept. */
const { FAIRLEAD_ATTACK_MEGABYTES: megabytes = "100" } = process.env;
const bytes = Number(megabytes) * 1e6;
/** The chunks that Node lets pile up before it collects them are some 64 MiB of it. */
const MOST_MEBIBYTES = 128;

const EXCESSES: readonly Excess[] = ["text", "nesting"];
const WHY = { text: "larger than 8 MiB", nesting: "nested deeper than 100 levels" };
const isList = ({ query }: SeenRequest) => !query.has("watch");
const before = { ...service("before"), metadata: { name: "before", namespace: "default" } };
const after = { ...service("after"), metadata: { name: "after", namespace: "default" } };

function serveHugeList(api: LightApiServer, excess: Excess): void {
  api.watchList = false;
  api.intercept((request, response) => {
    if (!isList(request)) return false;
    Readable.from(hugeList(excess, bytes, [JSON.stringify(before), JSON.stringify(after)])).pipe(response);
    return true;
  });
}

test.each(EXCESSES)(
  "a list with an object of endless %s: the others are there, it is reported by name",
  async (excess) => {
    const { api, server } = await fakeApi();
    serveHugeList(api, excess);
    const { services, reports, mebibytes } = await followElsewhere(server, "default/after");
    expect(services).toEqual(["default/before", "default/after"]);
    expect(reports).toContainEqual({
      type: "badObject",
      resource: "services",
      key: "default/huge",
      error: WHY[excess],
    });
    expect(mebibytes).toBeLessThan(MOST_MEBIBYTES);
  },
);

const PROTOBUF_WATCH = "application/vnd.kubernetes.protobuf;stream=watch";
const END_OF_LIST = { annotations: { "k8s.io/initial-events-end": "true" } };
const versioned = (name: string, resourceVersion: string) => ({
  ...service(name),
  metadata: { name, namespace: "default", resourceVersion },
});
/** A frame of a watch, of so many bytes behind its length. */
function* hugeFrame(length: number) {
  const prefix = Buffer.alloc(4);
  prefix.writeUInt32BE(length);
  yield prefix;
  const piece = Buffer.alloc(2 ** 16);
  for (let left = length; left > 0; left -= piece.length) yield left >= piece.length ? piece : piece.subarray(0, left);
}

test.each<["json" | "protobuf", (version: string) => Iterable<string | Buffer>]>([
  ["json", (version) => hugeEvent("text", bytes, version)],
  ["protobuf", () => hugeFrame(bytes)],
])("%s: two events too large on a live watch: those around them come", async (encoding, huge) => {
  const { api, server } = await fakeApi();
  const event = (type: string, object: object) =>
    encoding === "json" ? line(type, object) : encodeEvent(type, encodeObject("v1", "Service", object));
  const watch = function* () {
    yield event("ADDED", versioned("before", "120"));
    yield event("BOOKMARK", { metadata: { resourceVersion: "130", ...END_OF_LIST } });
    yield* huge("140");
    yield event("ADDED", versioned("between", "150"));
    yield* huge("160");
    yield event("ADDED", versioned("after", "170"));
  };
  api.intercept((_request, response) => {
    if (encoding === "protobuf") response.writeHead(200, { "content-type": PROTOBUF_WATCH });
    Readable.from(watch()).pipe(response);
    return true;
  });
  const { services, reports, mebibytes } = await followElsewhere(server, "default/after", encoding);
  expect(services).toEqual(["default/before", "default/between", "default/after"]);
  const found = { type: "badObject", resource: "services", error: WHY.text };
  expect(reports).toContainEqual(encoding === "json" ? { ...found, key: "default/huge" } : found);
  expect(mebibytes).toBeLessThan(MOST_MEBIBYTES);
});

test("a frame whose length is absurd ends the watch, and what it would have brought is listed", async () => {
  const { api, consumer, reports } = await following(undefined, { protobuf: true });
  const absurd = (_request: SeenRequest, response: ServerResponse) => {
    response.writeHead(200, { "content-type": PROTOBUF_WATCH });
    return !!response.write(Buffer.alloc(100, 0xff));
  };
  for (const _ of ["once", "twice"]) api.intercept(absurd);
  api.endWatches();
  api.store.put(SERVICES_PATH, service("later"));
  await consumer.until(() => consumer.state.has("default/later"));
  expect(reports.map((report) => ("error" in report ? report.error : ""))).toContainEqual(
    expect.stringMatching(/not protobuf: a frame of \d+ bytes or more/),
  );
});

test.each([false, true])(
  "an object that has become too large stays as it was, reported once, protobuf: %s",
  async (protobuf) => {
    const { api, consumer, reports } = await following(({ store }) => store.put(SERVICES_PATH, service("a")), {
      protobuf,
    });
    api.store.put(SERVICES_PATH, service("a", { selector: { filler: "x".repeat(9 * 2 ** 20) } }));
    api.store.put(SERVICES_PATH, service("b"));
    await consumer.until(() => consumer.state.has("default/b"));
    for (const name of ["c", "d"]) {
      api.watchList = name === "c";
      api.endWatches();
      api.store.compact();
      api.store.put(SERVICES_PATH, service(name));
      await consumer.until(() => consumer.state.has(`default/${name}`));
    }
    expect(consumer.keys()).toEqual(["default/a", "default/b", "default/c", "default/d"]);
    expect(reports.filter(({ type }) => type === "badObject")).toEqual([
      { type: "badObject", resource: "services", key: "default/a", error: "larger than 8 MiB" },
    ]);
    api.store.delete(SERVICES_PATH, "default/a");
    await consumer.until(() => !consumer.state.has("default/a"));
  },
);

test("objects without a name are reported once, not at every list", async () => {
  const nameless = (request: SeenRequest, response: ServerResponse) =>
    isList(request) &&
    !!response.end(JSON.stringify({ metadata: { resourceVersion: "100" }, items: [{ metadata: {} }, service("a")] }));
  const { api, consumer, reports } = await following((fake) => {
    fake.watchList = false;
    fake.intercept(nameless);
  });
  api.intercept(nameless);
  api.store.version = 101;
  api.store.compact();
  api.endWatches();
  await consumer.until(() => consumer.changes.length === 3);
  expect(reports.filter(({ type }) => type === "badObject")).toHaveLength(1);
});

/** Answers each page with these items and the token of another. */
function endless(api: LightApiServer, items: (page: number) => readonly unknown[]): void {
  api.watchList = false;
  let page = 0;
  const answer = (request: SeenRequest, response: ServerResponse) => {
    api.intercept(answer);
    if (request.query.has("watch")) return !!response.writeHead(422).end();
    page++;
    response.end(JSON.stringify({ metadata: { resourceVersion: "7", continue: "again" }, items: items(page) }));
    return true;
  };
  api.intercept(answer);
}

test("a list whose pages hold nothing new and never end is a failure that is waited after", async () => {
  const { api, server } = await fakeApi();
  endless(api, () => [service("same")]);
  const clock = new VirtualClock();
  const { reports } = run(server, { services: new Consumer().subscription }, { clock });
  await clock.timer((delay) => delay === 800);
  expect(reports.at(-1)).toMatchObject({
    type: "retry",
    error: expect.stringMatching(/no new objects but a continue token/),
  });
  expect(api.requests.length).toBeLessThan(5);
});

test("pages that are not full count against qps", async () => {
  const { api, server } = await fakeApi();
  endless(api, (page) => [service(`s${page}`)]);
  const clock = new VirtualClock();
  run(server, { services: new Consumer().subscription }, { clock, qps: 1, burst: 4 });
  await clock.timer((delay) => delay === 1000);
  expect(api.requests).toHaveLength(4);
  clock.advanceNow(1000);
  await api.requestsCame(5);
});
