import { Readable } from "node:stream";
import { until, VirtualClock } from "@fairlead/base/testing";
import type { LightApiServer } from "@fairlead/testkit/api-server";
import { testSignal } from "@fairlead/tooling/test-signal";
import { expect, test } from "vitest";
import { httpTransport, type Transport } from "../src/api/http.ts";
import { backoff, CLIENT_GO_RANGE } from "../src/api/recovery.ts";
import { Consumer, endAfterEach, fakeApi, following, run, SERVICES_PATH, service } from "./support/fake-api.ts";

endAfterEach();

test("back-off doubles from 800 ms to 30 s, stretched at random, and begins anew after two healthy minutes", () => {
  const clock = new VirtualClock();
  const next = backoff(clock, () => 0.5, CLIENT_GO_RANGE);
  const delays = Array.from({ length: 8 }, () => {
    const delay = next();
    clock.advanceNow(delay);
    return delay;
  });
  expect(delays).toEqual([1200, 2400, 4800, 9600, 19_200, 38_400, 45_000, 45_000]);
  clock.advanceNow(120_000 - 45_000);
  expect(next()).toBe(45_000);
  clock.advanceNow(120_001);
  expect(next()).toBe(1200);
});

test("Retry-After of 429 and 503 is waited for", async () => {
  const { api, server } = await fakeApi();
  const clock = new VirtualClock();
  api.intercept((_request, response) => !!response.writeHead(429, { "retry-after": "7" }).end("too many"));
  api.intercept((_request, response) => !!response.writeHead(503, { "retry-after": "9" }).end());
  const consumer = new Consumer();
  run(server, { services: consumer.subscription }, { clock });
  await clock.timer((delay) => delay === 7000);
  clock.advanceNow(6999);
  expect(api.requests).toHaveLength(1);
  clock.advanceNow(1);
  await clock.timer((delay) => delay === 9000);
  clock.advanceNow(9000);
  await consumer.until(() => consumer.synced > 0);
  expect(api.requests.every(({ query }) => query.has("sendInitialEvents"))).toBe(true);
});

const NODES_PATH = "/api/v1/nodes";

test("Retry-After is waited for by each resource, also while another one tries for all", async () => {
  const { api, server } = await fakeApi();
  const clock = new VirtualClock();
  const tries = clock.timer((delay) => delay === 1000);
  api.intercept(
    ({ path }, response) => path === SERVICES_PATH && !!response.writeHead(429, { "retry-after": "1" }).end(),
  );
  api.intercept(({ path }, response) => {
    if (path !== NODES_PATH) return false;
    void tries.then(() => response.writeHead(429, { "retry-after": "9" }).end());
    return true;
  });
  const [services, node] = [new Consumer(), new Consumer()];
  run(server, { services: services.subscription, node: node.subscription }, { clock });
  await tries;
  await clock.timer((delay) => delay === 9000);
  clock.advanceNow(1000);
  await services.until(() => services.synced === 1);
  clock.advanceNow(7999);
  await turn();
  expect(api.requests.filter(({ path }) => path === NODES_PATH)).toHaveLength(1);
  clock.advanceNow(1);
  await node.until(() => node.synced === 1);
});

/** A server that is asked for a sign of life answers, or not. */
const asked = ({ requests }: LightApiServer) => requests.filter(({ path }) => path === "/version").length;
const followed = ({ requests }: LightApiServer) => requests.filter(({ path }) => path !== "/version");

/** Service `a` is there, and from then on the server has nothing to say. */
async function quiet() {
  const clock = new VirtualClock();
  const followed = await following(({ store }) => store.put(SERVICES_PATH, service("a")), { clock });
  await clock.timer((delay) => delay === 90_000);
  return { clock, ...followed };
}

test("a server that stops saying anything is noticed after 85 s, and it is said", async () => {
  const { clock, api, consumer, reports } = await quiet();
  api.intercept(({ path }) => path === "/version");
  clock.advanceNow(69_999);
  expect(asked(api)).toBe(0);
  clock.advanceNow(1);
  await until(testSignal(), () => asked(api) === 1);
  clock.advanceNow(14_999);
  await turn();
  expect(reports.map(({ type }) => type)).toEqual(["listed"]);
  clock.advanceNow(1);
  await until(testSignal(), () => reports.some(({ type }) => type === "failing"));
  expect(reports.find(({ type }) => type === "failing")).toMatchObject({
    error: "the server does not respond: no data for 70 s, and no answer to a test request within 15 s",
  });
  await clock.timer((delay) => delay === 800);
  clock.advanceNow(800);
  api.store.put(SERVICES_PATH, service("b"));
  await consumer.until(() => consumer.state.has("default/b"));
  expect(followed(api)[1]?.query.get("resourceVersion")).toBe("101");
});

test("a server that sends a bookmark once a minute is not asked whether it is alive", async () => {
  const clock = new VirtualClock();
  const { api } = await following(() => {}, { clock });
  const { requests } = api;
  for (let minute = 1; minute <= 5; minute++) {
    clock.advanceNow(60_000);
    api.bookmark();
    await turn();
  }
  expect(requests.filter(({ path }) => path === "/version")).toEqual([]);
});

test("what comes on one connection is a sign for all", async () => {
  const clock = new VirtualClock();
  const { api, consumer } = await following(() => {}, { clock });
  for (let seconds = 20; seconds <= 100; seconds += 20) {
    clock.advanceNow(20_000);
    api.store.put(SERVICES_PATH, service(`s${seconds}`));
    await consumer.until(() => consumer.state.has(`default/s${seconds}`));
  }
  expect(asked(api)).toBe(0);
});

test("a watch on which nothing comes for 90 s, though the server lives, is resumed without a word", async () => {
  const { clock, api, reports } = await quiet();
  clock.advanceNow(70_000);
  await until(testSignal(), () => asked(api) === 1 && !clock.pending.includes(15_000));
  clock.advanceNow(19_999);
  expect(followed(api)).toHaveLength(1);
  clock.advanceNow(1);
  await until(testSignal(), () => followed(api).length === 2);
  expect(followed(api)[1]?.query.get("resourceVersion")).toBe("101");
  expect(reports.map(({ type }) => type)).toEqual(["listed"]);
});

test("a request without any answer is given up", async () => {
  const { api, server } = await fakeApi();
  const clock = new VirtualClock();
  for (let requests = 1; requests <= 2; requests++) api.intercept(() => true);
  const { reports } = run(server, { services: new Consumer().subscription }, { clock });
  await api.requestsCame(1);
  clock.advanceNow(70_000);
  await api.requestsCame(2);
  clock.advanceNow(15_000);
  await clock.timer((delay) => delay === 800);
  expect(reports[0]).toMatchObject({ type: "failing", error: expect.stringMatching(/^the server does not respond/) });
});

test("an API server that is back is found within 10 s, however long it was away", async () => {
  const { api, server } = await fakeApi();
  const clock = new VirtualClock();
  const connection = { server, credentials: async () => ({ headers: {}, tls: {} }) };
  const reach = httpTransport(connection, "fairlead-proxy/0.0.0", clock);
  let away = true;
  const transport: Transport = (request) => (away ? Promise.reject(new Error("connect ECONNREFUSED")) : reach(request));
  const consumer = new Consumer();
  const { reports } = run(server, { services: consumer.subscription }, { clock, transport, random: () => 0.999 });
  const waits = () => reports.flatMap((report) => (report.type === "retry" ? [report.delayMilliseconds] : []));
  const waiting = (attempt: number) =>
    until(testSignal(), () => waits().length === attempt && pending(clock, waits().at(-1)));
  let attempt = 1;
  for (await waiting(attempt); clock.monotonic() < 600_000; await waiting(attempt)) {
    clock.advanceNow(waits().at(-1) ?? 0);
    attempt += 1;
  }
  away = false;
  clock.advanceNow(10_000);
  await api.requestsCame(1);
  await consumer.until(() => consumer.synced > 0);
  expect(attempt).toBeGreaterThan(60);
});

test.each([409, 410, 500])("a storm of %i asks no faster than back-off does", async (status) => {
  const clock = new VirtualClock();
  let asked = 0;
  const transport: Transport = async () => {
    asked += 1;
    const text = JSON.stringify({ kind: "Status", code: status, reason: "Expired", message: "too old" });
    return { status, header: () => undefined, body: Readable.from([Buffer.from(text)]) };
  };
  const to = { services: new Consumer().subscription, node: new Consumer().subscription };
  run("https://192.0.2.1:6443", to, { clock, transport });
  while (clock.monotonic() < 600_000) await clock.advance(1_000);
  // Two resources, from 0.8 s to 30 s apart.
  expect(asked).toBeGreaterThan(20);
  expect(asked).toBeLessThan(80);
});

test("unreachable is said at once, then once a minute with how long and what else fails", async () => {
  const clock = new VirtualClock();
  const refused = () => Promise.reject(new Error("connect ECONNREFUSED 192.0.2.1:6443"));
  const to = { services: new Consumer().subscription, node: new Consumer().subscription };
  const { reports } = run("https://192.0.2.1:6443", to, { clock, transport: refused });
  const said = () => reports.filter((report) => report.type === "failing");
  await until(testSignal(), () => clock.pending.includes(800));
  expect(said()).toEqual([
    {
      type: "failing",
      problem: "unreachable",
      server: "https://192.0.2.1:6443",
      address: "192.0.2.1",
      milliseconds: 0,
      error: "connect ECONNREFUSED 192.0.2.1:6443",
      resources: ["services"],
    },
  ]);
  clock.advanceNow(59_999);
  expect(said()).toHaveLength(1);
  clock.advanceNow(1);
  clock.advanceNow(60_000);
  expect(said().slice(1)).toMatchObject([
    { milliseconds: 60_000, resources: ["services", "node"] },
    { milliseconds: 120_000, resources: ["services", "node"] },
  ]);
});

test("while nothing answers, one resource tries for all; each is followed once the server is back", async () => {
  const { server } = await fakeApi();
  const clock = new VirtualClock();
  const reach = httpTransport({ server, credentials: async () => ({ headers: {}, tls: {} }) }, "x", clock);
  let away = true;
  let attempts = 0;
  const transport: Transport = (request) => {
    attempts++;
    return away ? Promise.reject(new Error("connect ECONNREFUSED")) : reach(request);
  };
  const [services, endpointSlices, node] = [new Consumer(), new Consumer(), new Consumer()];
  const to = { services, endpointSlices, node };
  const { reports } = run(
    server,
    { services: services.subscription, endpointSlices: endpointSlices.subscription, node: node.subscription },
    { clock, transport },
  );
  for (const delay of [800, 1600, 3200, 5000, 5000]) {
    await clock.timer((ms) => ms === delay);
    expect(clock.pending.filter((ms) => ms <= 5000)).toEqual([delay]);
    clock.advanceNow(delay);
  }
  await clock.timer((ms) => ms === 5000);
  // Each has found out for itself, and then one at a time.
  expect(attempts).toBe(3 + 5);
  away = false;
  clock.advanceNow(5000);
  await Promise.all(Object.values(to).map((one) => one.until(() => one.synced === 1)));
  expect(reports.at(-1)).toMatchObject({ type: expect.stringMatching(/listed|recovered/) });
  expect(attempts).toBe(3 + 5 + 3);
});

test("a request without an answer holds up the other resources for 10 s at most", async () => {
  const { server } = await fakeApi();
  const clock = new VirtualClock();
  const reach = httpTransport({ server, credentials: async () => ({ headers: {}, tls: {} }) }, "x", clock);
  let requests = 0;
  const transport: Transport = (request) => {
    requests++;
    if (requests <= 2) return Promise.reject(new Error("connect ECONNREFUSED"));
    return requests === 3 ? untilAborted(request.signal) : reach(request);
  };
  const [services, node] = [new Consumer(), new Consumer()];
  run(server, { services: services.subscription, node: node.subscription }, { clock, transport });
  await clock.timer((delay) => delay === 800);
  clock.advanceNow(800);
  await until(testSignal(), () => requests === 3 && clock.pending.includes(10_000));
  clock.advanceNow(9999);
  await turn();
  expect(requests).toBe(3);
  clock.advanceNow(1);
  await until(testSignal(), () => services.synced + node.synced === 1);
});

test("a resource that stays refused leaves the turn to others that were refused", async () => {
  const { api, server } = await fakeApi();
  const refuse = (wanted: string) =>
    api.intercept(({ path }, response) => path === wanted && !!response.writeHead(429).end());
  for (let times = 0; times < 50; times++) refuse(SERVICES_PATH);
  refuse(NODES_PATH);
  const [services, node] = [new Consumer(), new Consumer()];
  run(server, { services: services.subscription, node: node.subscription });
  await node.until(() => node.synced === 1);
  expect(services.synced).toBe(0);
});

test("a real refused connection is such an error", async () => {
  const { api, server } = await fakeApi();
  await api.stop();
  const clock = new VirtualClock();
  const { reports } = run(server, { services: new Consumer().subscription }, { clock });
  await clock.timer((delay) => delay === 800);
  expect(reports[0]).toMatchObject({ type: "failing", error: expect.stringMatching(/ECONNREFUSED/) });
});

test("an answer that cannot be read has been reached", async () => {
  const { api, server } = await fakeApi();
  const clock = new VirtualClock();
  api.intercept((_request, response) => !!response.writeHead(200, { "content-type": "application/json" }).end("[]\n"));
  const { reports } = run(server, { services: new Consumer().subscription }, { clock });
  await until(testSignal(), () => reports.some(({ type }) => type === "failing"));
  expect(reports.find(({ type }) => type === "failing")).toMatchObject({ problem: "unreadable" });
});

test("its end is said once every resource is followed again", async () => {
  const { api, server } = await fakeApi();
  const clock = new VirtualClock();
  for (let i = 0; i < 2; i++) api.intercept((_request, response) => !!response.writeHead(500).end());
  const [services, node] = [new Consumer(), new Consumer()];
  const { reports } = run(server, { services: services.subscription, node: node.subscription }, { clock });
  await until(testSignal(), () => clock.pending.filter((delay) => delay === 800).length === 2);
  clock.advanceNow(800);
  await until(testSignal(), () => reports.some(({ type }) => type === "recovered"));
  expect([services.synced, node.synced]).toEqual([1, 1]);
  expect(reports.filter(({ type }) => type === "failing" || type === "recovered")).toMatchObject([
    { type: "failing", problem: "refused", error: "500" },
    { type: "recovered", milliseconds: 800 },
  ]);
});

test("qps and burst: the first requests at once, then so many a second", async () => {
  const { api, server } = await fakeApi();
  const clock = new VirtualClock();
  const consumers = [new Consumer(), new Consumer(), new Consumer(), new Consumer()] as const;
  const [services, endpointSlices, node, serviceCIDRs] = consumers;
  run(
    server,
    {
      services: services.subscription,
      endpointSlices: endpointSlices.subscription,
      node: node.subscription,
      serviceCIDRs: serviceCIDRs.subscription,
    },
    { clock, qps: 2, burst: 2 },
  );
  await api.requestsCame(2);
  expect(clock.pending.filter((delay) => delay <= 1000)).toEqual([500, 1000]);
  clock.advanceNow(500);
  await api.requestsCame(3);
  clock.advanceNow(500);
  await api.requestsCame(4);
  await Promise.all(consumers.map((one) => one.until(() => one.synced > 0)));
});

test("pages of a list don't count against qps", async () => {
  const clock = new VirtualClock();
  const { api, server } = await fakeApi();
  api.watchList = false;
  for (let i = 0; i < 2000; i++) api.store.put(SERVICES_PATH, service(`s${i}`));
  for (let i = 0; i < 2; i++)
    api.intercept(({ query }, response) => !query.has("watch") && !!response.writeHead(413).end());
  const consumer = new Consumer();
  const { reports } = run(server, { services: consumer.subscription }, { clock, qps: 1, burst: 4 });
  for (const wait of [800, 1600]) {
    await clock.timer((delay) => delay === wait);
    clock.advanceNow(wait);
  }
  await consumer.until(() => consumer.synced > 0);
  await until(testSignal(), () => reports.some(({ type }) => type === "listed"));
  expect(reports.find(({ type }) => type === "listed")).toMatchObject({
    how: "chunks",
    objects: 2000,
    milliseconds: 0,
  });
});

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new Error("the request was canceled")), { once: true });
  });
}

function pending(clock: VirtualClock, delay: number | undefined): boolean {
  return delay !== undefined && clock.pending.includes(delay);
}

function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
