import { isDeepStrictEqual } from "node:util";
import { objectAt, valueAt } from "@fairlead/base";
import { VirtualClock } from "@fairlead/base/testing";
import { fail, keyIn, LightApiServer, line, type SeenRequest, selection } from "@fairlead/testkit/api-server";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Consumer, endAfterEach, fakeApi, following, run, SERVICES_PATH, service } from "./support/fake-api.ts";

endAfterEach();

const isWatch = ({ query }: SeenRequest) => query.get("watch") === "true";
const modeOf = ({ query }: SeenRequest) => {
  if (query.has("sendInitialEvents")) return "watchList";
  if (query.has("watch")) return "watch";
  return query.has("limit") ? "page" : "list";
};
const modes = (api: LightApiServer) => api.requests.map(modeOf);
const oneService = ({ store }: LightApiServer) => store.put(SERVICES_PATH, service("a"));

test("a server without WatchList gives one list from its cache, then a watch from its version", async () => {
  const { api, consumer, reports } = await following((fake) => {
    fake.watchList = false;
    oneService(fake);
    fake.store.put(SERVICES_PATH, service("headless", { clusterIP: "None" }));
  });
  expect(consumer.changes).toHaveLength(2);
  expect(consumer.keys()).toEqual(["default/a"]);
  await api.requestsCame(3);
  expect(modes(api)).toEqual(["watchList", "list", "watch"]);
  expect(api.requests[1]?.query.get("resourceVersion")).toBe("0");
  expect(api.requests[1]?.query.get("limit")).toBeNull();
  expect(api.requests[2]?.query.get("resourceVersion")).toBe("102");
  expect(reports.map((report) => report.type)).toEqual(["retry", "listed"]);
});

test("where lists by a watch are turned off none is asked for, nor after a version has expired", async () => {
  const { api, consumer } = await following(
    (fake) => {
      oneService(fake);
      let expired = false;
      fake.intercept((request, response) => {
        if (modeOf(request) !== "watch" || expired) return false;
        expired = true;
        return !!fail(response, 410, "Expired", "too old");
      });
    },
    { watchList: false },
  );
  await api.requestsCame(4);
  expect(modes(api)).toEqual(["list", "watch", "list", "watch"]);
  expect(consumer.keys()).toEqual(["default/a"]);
});

test("a list that is too much for the server comes in pages, as one list", async () => {
  const { api, consumer, reports } = await following((fake) => {
    fake.watchList = false;
    for (let i = 0; i < 1200; i++) fake.store.put(SERVICES_PATH, service(`s${i}`));
    for (let i = 0; i < 2; i++)
      fake.intercept((request, response) => modeOf(request) === "list" && !!fail(response, 504, "Timeout", "too slow"));
  });
  expect(consumer.state.size).toBe(1200);
  await api.requestsCame(7);
  expect(modes(api)).toEqual(["watchList", "list", "list", "page", "page", "page", "watch"]);
  expect(reports.findLast((report) => report.type === "listed")).toMatchObject({ how: "chunks", objects: 1200 });
});

test("a list that breaks off is not complete; the next one deletes nothing that exists", async () => {
  const { api, consumer } = await following((fake) => {
    fake.watchList = false;
    oneService(fake);
    fake.intercept((request, response) => {
      if (modeOf(request) !== "list") return false;
      response.write(
        `{"kind":"List","metadata":{"resourceVersion":"7"},"items":[${JSON.stringify(service("gone"))},{"me`,
      );
      setImmediate(() => response.destroy());
      return true;
    });
  });
  expect(modes(api).slice(0, 3)).toEqual(["watchList", "list", "list"]);
  expect(consumer.changes.map((change) => [change.type, "key" in change ? change.key : ""])).toEqual([
    ["upsert", "default/gone"],
    ["upsert", "default/a"],
    ["delete", "default/gone"],
    ["synced", ""],
  ]);
});

test("a watch cut in the middle of a line is resumed from the last whole event", async () => {
  const { api, consumer, reports } = await following(oneService);
  api.store.put(SERVICES_PATH, service("b"));
  await consumer.until(() => consumer.state.has("default/b"));
  api.cutWatches('{"type":"ADDED","object":{"metadata":{"name":"half');
  api.store.put(SERVICES_PATH, service("c"));
  await consumer.until(() => consumer.state.has("default/c"));
  expect(modes(api)).toEqual(["watchList", "watch"]);
  expect(api.requests[1]?.query.get("resourceVersion")).toBe("102");
  expect(reports.filter((report) => report.type === "failing")).toEqual([]);
  expect(consumer.state.size).toBe(3);
});

test("a watch that ends goes on from the last bookmark", async () => {
  const { api, consumer } = await following(oneService);
  api.store.put("/other", service("elsewhere"));
  api.bookmark();
  api.endWatches();
  await api.requestsCame(2);
  expect(api.requests[1]?.query.get("resourceVersion")).toBe("102");
  api.store.put(SERVICES_PATH, service("b"));
  await consumer.until(() => consumer.state.has("default/b"));
});

test.each(["as status", "as event"])("410 %s: lists anew and deletes what vanished", async (how) => {
  const { api, consumer } = await following(({ store }) => {
    store.put(SERVICES_PATH, service("a"));
    store.put(SERVICES_PATH, service("b"));
  });
  if (how === "as event")
    api.intercept((request, response) => {
      if (!isWatch(request)) return false;
      response.write(
        line("ERROR", { kind: "Status", code: 410, reason: "Expired", message: "too old resource version" }),
      );
      return true;
    });
  api.endWatches();
  api.store.delete(SERVICES_PATH, "default/b");
  api.store.put(SERVICES_PATH, service("c"));
  api.store.compact();
  await consumer.until(() => consumer.state.has("default/c") && !consumer.state.has("default/b"));
  expect(modes(api)).toEqual(["watchList", "watch", "watchList"]);
  expect(consumer.synced).toBe(1);
});

test("a version that the server has not reached (a restored etcd): lists the latest state", async () => {
  const { api, consumer } = await following(oneService);
  api.store.delete(SERVICES_PATH, "default/a");
  await consumer.until(() => consumer.state.size === 0);
  api.store.version = 50;
  api.store.compacted = 0;
  api.store.put(SERVICES_PATH, service("restored"));
  api.endWatches();
  await consumer.until(() => consumer.state.has("default/restored"));
  expect(api.requests.at(-1)?.query.get("resourceVersion")).toBe("");
});

test.each([
  ["no JSON", "not json\n"],
  ["no object", '{"type":"ADDED"}\n'],
  ["an unknown type", line("WHATEVER", { metadata: { name: "x", resourceVersion: "9" } })],
  ["no version", line("ADDED", { metadata: { name: "x", namespace: "y" } })],
  ["an error event", line("ERROR", { kind: "Status", code: 500, message: "etcd is away" })],
])("%s in the watch: said, and resumed", async (_what, text) => {
  const { api, consumer, reports } = await following(oneService);
  api.send(text);
  await api.requestsCame(2);
  expect(modes(api)).toEqual(["watchList", "watch"]);
  expect(api.requests[1]?.query.get("resourceVersion")).toBe("101");
  expect(reports.some((report) => report.type === "retry")).toBe(true);
  api.store.put(SERVICES_PATH, service("b"));
  await consumer.until(() => consumer.state.has("default/b"));
});

test("an event that can never be read: after three times all is listed anew", async () => {
  const { api, consumer } = await following(oneService);
  for (let i = 0; i < 2; i++) {
    api.intercept((request, response) => modeOf(request) === "watch" && response.write("garbage\n") !== undefined);
  }
  api.store.put("/other", service("x"));
  api.send("garbage\n");
  await api.requestsCame(4);
  expect(modes(api)).toEqual(["watchList", "watch", "watch", "watchList"]);
  expect(consumer.keys()).toEqual(["default/a"]);
});

test("an object without a name is reported, the others are given", async () => {
  const { api, consumer, reports } = await following();
  api.send(line("ADDED", { metadata: { resourceVersion: "150" } }));
  api.store.version = 150;
  api.store.put(SERVICES_PATH, service("a"));
  await consumer.until(() => consumer.state.has("default/a"));
  expect(reports).toContainEqual({ type: "badObject", resource: "services", error: "metadata.name is missing" });
});

test("an event that comes twice is given once", async () => {
  const { api, consumer } = await following();
  api.store.put(SERVICES_PATH, service("a"));
  const [stored] = api.store.list(SERVICES_PATH);
  api.send(line("MODIFIED", stored));
  api.store.put(SERVICES_PATH, service("b"));
  await consumer.until(() => consumer.state.has("default/b"));
  expect(consumer.changes.map((change) => change.type)).toEqual(["synced", "upsert", "upsert"]);
  const deleted = { ...stored, metadata: { ...objectAt(stored, "metadata"), resourceVersion: "103" } };
  api.send(line("DELETED", deleted) + line("DELETED", deleted));
  api.store.version = 103;
  api.store.put(SERVICES_PATH, service("c"));
  await consumer.until(() => consumer.state.has("default/c"));
  expect(consumer.keys()).toEqual(["default/b", "default/c"]);
});

test("a watch that ends as soon as it begins is a failure", async () => {
  const clock = new VirtualClock();
  const { api, reports } = await following(() => {}, { clock });
  api.intercept((request, response) => isWatch(request) && !!response.writeHead(200).end());
  api.endWatches();
  expect(await clock.timer((delay) => delay === 800)).toBe(800);
  expect(reports.at(-1)).toMatchObject({ type: "retry", error: "the watch ended right after its start" });
});

test("a response that is no list is a failure like others", async () => {
  const { api, server } = await fakeApi();
  api.watchList = false;
  api.intercept((request, response) => modeOf(request) === "list" && !!response.end("<html>captive portal</html>"));
  api.intercept((request, response) => modeOf(request) === "list" && !!response.end('{"items":[]}'));
  const consumer = new Consumer();
  const { reports } = run(server, { services: consumer.subscription });
  await consumer.until(() => consumer.synced > 0);
  const errors = reports.flatMap((report) => (report.type === "retry" ? [report.error] : []));
  expect(errors[1]).toMatch(/^the list is not JSON: /);
  expect(errors[2]).toBe("the list has no resourceVersion");
});

test("a server that has forgotten the version is asked for a list soon, however long it was away", async () => {
  const clock = new VirtualClock();
  const { api, consumer } = await following(oneService, { clock });
  for (let i = 0; i < 6; i++) {
    api.intercept((request, response) => isWatch(request) && !!response.writeHead(503).end());
  }
  api.endWatches();
  for (const wait of [800, 1600, 3200, 6400, 12_800, 25_600]) {
    await clock.timer((delay) => delay === wait);
    api.store.put(SERVICES_PATH, service("b"));
    api.store.compact();
    clock.advanceNow(wait);
  }
  await clock.timer((delay) => delay === 800);
  clock.advanceNow(800);
  await consumer.until(() => consumer.state.has("default/b"));
});

test("WatchList that ends before all objects were sent is begun again", async () => {
  const { api, server } = await fakeApi();
  oneService(api);
  api.intercept(
    (request, response) => isWatch(request) && !!response.end(line("ADDED", api.store.list(SERVICES_PATH)[0])),
  );
  const consumer = new Consumer();
  const { reports } = run(server, { services: consumer.subscription });
  await consumer.until(() => consumer.synced > 0);
  expect(modes(api)).toEqual(["watchList", "watchList"]);
  expect(reports).toContainEqual(expect.objectContaining({ error: "the watch ended before all objects were sent" }));
});

type Step = (api: LightApiServer, turn: () => Promise<void>) => unknown;

const name = fc.constantFrom("a", "b", "c", "d", "e");
const labels = fc.constantFrom({}, {}, {}, { "service.kubernetes.io/service-proxy-name": "x" });
const clusterIP = fc.constantFrom("10.96.0.1", "10.96.0.1", "10.96.0.1", "None");

const put = fc.tuple(name, labels, clusterIP, fc.nat(9), fc.constantFrom("a", "b", "c", "bad")).map(
  ([of, label, clusterIP, port, type]): Step =>
    (api) =>
      api.store.put(SERVICES_PATH, service(of, { clusterIP, ports: [{ port }], type }, label)),
);
const remove = name.map(
  (of): Step =>
    (api) =>
      api.store.delete(SERVICES_PATH, `default/${of}`),
);
const elsewhere: Step = (api) => api.store.put("/elsewhere", service("x"));
const cut = fc.constantFrom("", '{"type":"ADDED","object":{"met', "\n", "garbage\n").map(
  (text): Step =>
    (api) =>
      api.cutWatches(text),
);
const end: Step = (api) => api.endWatches();
const compact: Step = (api) => api.store.compact();
const bookmark: Step = (api) => api.bookmark();
const expiredEvent: Step = (api) => api.notify("ERROR", { kind: "Status", code: 410, reason: "Expired" });
const again: Step = (api) => {
  const last = api.store.since(0).findLast((event) => event.path === SERVICES_PATH && event.after !== undefined);
  const stored = api.store.list(SERVICES_PATH).find((raw) => raw === last?.after);
  if (stored !== undefined && selected(stored) && last?.version === api.store.version) api.notify("MODIFIED", stored);
};
const faulty = fc.constantFrom(429, 500, 503, 504, 410, 413, 401).map(
  (code): Step =>
    (api) =>
      api.intercept((_request, response) => !!fail(response, code, "", "fault")),
);
const brokenList: Step = (api) =>
  api.intercept(({ query }, response) => {
    if (query.has("watch")) return false;
    response.write(
      '{"kind":"List","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a","namespace":"default"',
    );
    setImmediate(() => response.destroy());
    return true;
  });
const brokenWatchList: Step = (api) =>
  api.intercept(({ query }, response) => {
    if (!query.has("sendInitialEvents")) return false;
    response.write(line("ADDED", { ...service("ghost"), metadata: { name: "ghost", resourceVersion: "7" } }));
    setImmediate(() => response.destroy());
    return true;
  });
const pause: Step = (_api, turn) => turn();

const step = fc.oneof(
  { weight: 6, arbitrary: put },
  { weight: 3, arbitrary: remove },
  { weight: 10, arbitrary: fc.constant(pause) },
  { weight: 2, arbitrary: cut },
  { weight: 1, arbitrary: faulty },
  ...[elsewhere, end, compact, bookmark, expiredEvent, again, brokenList, brokenWatchList].map((one) => ({
    weight: 1,
    arbitrary: fc.constant(one),
  })),
);

const selected = selection(
  new URLSearchParams({
    labelSelector: "!service.kubernetes.io/service-proxy-name",
    fieldSelector: "spec.clusterIP!=None",
  }),
);

function expected(api: LightApiServer): Record<string, unknown> {
  const good = api.store
    .list(SERVICES_PATH)
    .filter(selected)
    .filter((raw) => valueAt(objectAt(raw, "spec"), "type") !== "bad");
  return Object.fromEntries(good.map((raw) => [keyIn(raw), objectAt(raw, "spec")]));
}

function given(consumer: Consumer): Record<string, unknown> {
  return Object.fromEntries([...consumer.state].map(([key, kept]) => [key, kept.spec]));
}

/** Turns of the event loop, a millisecond or so, in which both sides get somewhere before the next step. */
async function turns(): Promise<void> {
  for (let i = 0; i < 200; i++) await new Promise((resolve) => setImmediate(resolve));
}

test("whatever happens on the way, the consumer ends with what the server has", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 40, size: "max" }),
      fc.boolean(),
      fc.boolean(),
      async (steps, watchList, protobuf) => {
        const api = new LightApiServer();
        api.watchList = watchList;
        const server = await api.start();
        const consumer = new Consumer();
        const { stop } = run(server, { services: consumer.subscription }, { qps: -1, protobuf });
        try {
          for (const one of steps) await one(api, turns);
          api.forget();
          api.store.put(SERVICES_PATH, service("last"));
          const settled = () => consumer.synced > 0 && isDeepStrictEqual(given(consumer), expected(api));
          for (let turn = 0; turn < 1000 && !settled(); turn++) await turns();
          expect(given(consumer)).toEqual(expected(api));
          expect(consumer.synced).toBe(1);
        } finally {
          await stop();
          await api.stop();
        }
      },
    ),
    { numRuns: runs(50) },
  );
});
