import { isDeepStrictEqual } from "node:util";
import { objectAt, valueAt } from "@fairlead/base";
import { fail, keyIn, LightApiServer, line, selection } from "@fairlead/testkit/api-server";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Consumer } from "./support/consumer.ts";
import { endAfterEach, run, SERVICES_PATH, service } from "./support/run.ts";

endAfterEach();

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
    { numRuns: runs(150) },
  );
});
