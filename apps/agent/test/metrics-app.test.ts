import { createTraffic } from "@fairlead/backend-userspace";
import { VirtualClock } from "@fairlead/base/testing";
import { describe, expect, test } from "vitest";
import { routes } from "../src/http/app.ts";
import { listen } from "../src/http/listen.ts";
import { metricsApp, type RelayTable } from "../src/http/metrics-app.ts";
import { nodeProfiles, profileRoutes } from "../src/http/profiles.ts";
import { ask, nothingMeasured } from "./support/http.ts";

const startedAt = Date.UTC(2030, 0, 1);

function port(more: Partial<Parameters<typeof metricsApp>[0]> = {}) {
  const clock = new VirtualClock(startedAt);
  const sources = {
    ...nothingMeasured(startedAt),
    build: { version: "1.2.3", follows: "1.37", startedAt },
    flags: { v: "2", "cluster-cidr": "10.144.0.0/16" },
    ...more,
  };
  return { clock, app: metricsApp(sources, clock) };
}

const object = (type: string, kind: string, version = "v1beta1") => ({
  accept: `${type};g=config.k8s.io;v=${version};as=${kind}`,
});

describe("/statusz", () => {
  test("text by default: what runs since when, and the other paths", async () => {
    const { app, clock } = port();
    await clock.advance(3_723_000);
    for (const accept of ["", "*/*", "text/plain", "application/json;q=0.9, text/*"]) {
      const answer = await ask(app, "/statusz", { accept });
      expect(answer.headers.get("Content-Type")).toBe("text/plain; charset=utf-8");
      expect(await answer.text()).toBe(`
kube-proxy statusz
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.

Started: Tue, 01 Jan 2030 00:00:00 GMT
Up: 1 hr 02 min 03 sec
Node version: ${process.version}
Binary version: 1.2.3
Emulation version: 1.37
Paths: /configz /flagz /healthz /metrics /ownership /proxyMode /relays
`);
    }
  });

  test("an object for a request that names it", async () => {
    const { app, clock } = port();
    await clock.advance(5_000);
    const answer = await ask(app, "/statusz", object("application/json", "Statusz"));
    expect(answer.headers.get("Content-Type")).toBe("application/json");
    expect(answer.headers.get("Warning")).toBeNull();
    expect(await answer.json()).toEqual({
      kind: "Statusz",
      apiVersion: "config.k8s.io/v1beta1",
      metadata: { name: "kube-proxy" },
      startTime: "2030-01-01T00:00:00Z",
      uptimeSeconds: 5,
      goVersion: "",
      binaryVersion: "1.2.3",
      emulationVersion: "1.37",
      paths: ["/configz", "/flagz", "/healthz", "/metrics", "/ownership", "/proxyMode", "/relays"],
    });
    const old = await ask(app, "/statusz", object("application/yaml", "Statusz", "v1alpha1"));
    expect(old.headers.get("Content-Type")).toBe("application/yaml");
    expect(old.headers.get("Warning")).toContain("deprecated");
    expect(await old.json()).toMatchObject({ apiVersion: "config.k8s.io/v1alpha1" });
  });

  test.each([
    "application/json",
    "image/png",
    "application/json;g=config.k8s.io;v=v2;as=Statusz",
    "application/json;g=config.k8s.io;v=v1beta1;as=Flagz",
    "text/plain;q=0",
  ])("%s is not acceptable", async (accept) => {
    const answer = await ask(port().app, "/statusz", { accept });
    expect(answer.status).toBe(406);
    expect(await answer.json()).toMatchObject({ kind: "Status", reason: "NotAcceptable", code: 406 });
  });
});

test("/flagz: the command line with its defaults, sorted", async () => {
  const { app } = port();
  expect(await (await ask(app, "/flagz")).text()).toMatch(
    /^\nkube-proxy flagz\nWarning: .*\ncluster-cidr=10\.144\.0\.0\/16\nv=2\n$/,
  );
  expect(await (await ask(app, "/flagz", object("application/json", "Flagz"))).json()).toEqual({
    kind: "Flagz",
    apiVersion: "config.k8s.io/v1beta1",
    metadata: { name: "kube-proxy" },
    flags: { "cluster-cidr": "10.144.0.0/16", v: "2" },
  });
});

test("where a gate takes them away they are 404", async () => {
  const { app } = port({ build: undefined, flags: undefined });
  for (const path of ["/statusz", "/flagz"]) expect((await ask(app, path)).status).toBe(404);
});

test("/metrics/slis counts this port's health checks until it is reset", async () => {
  const { app } = port();
  const slis = async () => (await ask(app, "/metrics/slis")).text();
  expect(await slis()).not.toContain("kubernetes_healthcheck{");
  expect(await (await ask(app, "/healthz")).text()).toBe("ok");
  expect(await (await ask(app, "/healthz?verbose")).text()).toBe("[+]ping ok\nhealthz check passed\n");
  expect(await (await ask(app, "/healthz/ping")).text()).toBe("ok");
  const text = await slis();
  expect(text).toContain('kubernetes_healthcheck{name="ping",type="healthz"} 1');
  expect(text).toContain('kubernetes_healthchecks_total{name="ping",type="healthz",status="success"} 2');
  expect(text).toContain(`process_start_time_seconds ${startedAt / 1000}`);
  expect(await (await ask(app, "/metrics/slis", { method: "DELETE" })).text()).toBe("metrics reset\n");
  expect(await slis()).not.toContain("kubernetes_healthcheck{");
});

const appWith = (relays?: RelayTable) => metricsApp({ ...nothingMeasured(), relays }, new VirtualClock());

const RELAY = { address: "10.201.0.10", port: 20_001 };

/** Of as many connections as are asked for. */
function table(count: number): RelayTable {
  const traffic = createTraffic();
  traffic.listening.add({ protocol: "TCP", ...RELAY });
  const nothing = () => {};
  for (let port = 1; port <= count; port++) {
    const client = { address: "10.144.1.9", port };
    const endpoint = { address: "10.144.1.5", port: 8080 };
    traffic.add({
      end: nothing,
      destroy: nothing,
      relayed: () => ({ protocol: "TCP", client, relay: RELAY, endpoint }),
    });
  }
  return traffic;
}

test("relays and their connections, a line each, over the real port too", async () => {
  const listener = await listen(appWith(table(1_000)), { host: "127.0.0.1", port: 0 });
  const answer = await fetch(`http://127.0.0.1:${listener.address.port}/relays`);
  expect([answer.status, answer.headers.get("Content-Type")]).toEqual([200, "application/jsonl"]);
  const lines = (await answer.text()).trim().split("\n");
  await listener.close();
  expect(lines).toHaveLength(1_001);
  expect(lines[0]).toBe('{"listening":{"protocol":"TCP","address":"10.201.0.10","port":20001}}');
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ connection: { client: { port: 1_000 }, relay: RELAY } });
});

test("nothing where nothing is relayed, and nothing for those elsewhere", async () => {
  const none = await ask(appWith(), "/relays");
  expect([none.status, await none.text()]).toEqual([200, ""]);
  expect((await ask(appWith(table(1)), "/relays", { local: false })).status).toBe(403);
});

test("the event loop has its turns while many connections are listed", async () => {
  const answer = await ask(appWith(table(10_000)), "/relays");
  let turns = 0;
  let ended = false;
  const text = answer.text().finally(() => {
    ended = true;
  });
  while (!ended) {
    await new Promise(setImmediate);
    turns += 1;
  }
  expect((await text).split("\n")).toHaveLength(10_002);
  expect(turns).toBeGreaterThan(50);
});

test("without enableProfiling there is nothing", async () => {
  const app = metricsApp(nothingMeasured(), new VirtualClock());
  for (const path of ["/debug/pprof/", "/debug/pprof/profile", "/debug/pprof/heap"]) {
    expect((await ask(app, path)).status).toBe(404);
  }
});

test("a CPU profile and an allocation profile of this process", async () => {
  const app = metricsApp({ ...nothingMeasured(), profiles: nodeProfiles() }, new VirtualClock());
  const cpu = await ask(app, "/debug/pprof/profile?seconds=0.05");
  expect(cpu.headers.get("Content-Disposition")).toContain(".cpuprofile");
  expect(await cpu.json()).toHaveProperty("nodes");
  const kept = Array.from({ length: 100_000 }, (_, i) => ({ [`a${i % 10}`]: i }));
  const heap = await ask(app, "/debug/pprof/heap");
  expect(heap.headers.get("Content-Disposition")).toContain(".heapprofile");
  const { head, samples } = JSON.parse(await heap.text());
  expect(head).toHaveProperty("callFrame.functionName", "(root)");
  expect(samples.length).toBeGreaterThan(0);
  expect(kept).toHaveLength(100_000);
});

test("one CPU profile at a time, of a length that makes sense", async () => {
  const asked = Promise.withResolvers<string>();
  const app = routes(profileRoutes({ cpu: () => asked.promise, heap: async () => "{}" }));
  for (const seconds of ["0", "-1", "soon", "301"]) {
    expect((await ask(app, `/debug/pprof/profile?seconds=${seconds}`)).status).toBe(400);
  }
  const first = ask(app, "/debug/pprof/profile?seconds=1");
  expect((await ask(app, "/debug/pprof/profile")).status).toBe(409);
  asked.resolve("{}");
  expect((await first).status).toBe(200);
  expect((await ask(app, "/debug/pprof/profile")).status).toBe(200);
});

test("a CPU profile ends when no client waits for it any more, and another can be taken", async () => {
  const app = routes(profileRoutes(nodeProfiles()));
  const gone = new AbortController();
  const first = ask(app, "/debug/pprof/profile?seconds=300", { gone: gone.signal });
  gone.abort();
  expect((await first).status).toBe(200);
  expect((await ask(app, "/debug/pprof/profile?seconds=0.01")).status).toBe(200);
});
