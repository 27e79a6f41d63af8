import { VirtualClock } from "@fairlead/base/testing";
import type { HealthCheck, ServiceKey } from "@fairlead/core";
import { describe, expect, test } from "vitest";
import { healthApp, ProxyHealth } from "../src/proxy-health.ts";
import { NodeEligibility } from "../src/run/inputs.ts";
import { ServiceHealthServers, serviceHealthApp } from "../src/service-health.ts";
import { ask } from "./support/http.ts";

function twoFamilies(timeout = 60_000) {
  const clock = new VirtualClock();
  const health = new ProxyHealth(timeout, clock);
  health.started("IPv4");
  health.started("IPv6");
  return { clock, health };
}

describe("ProxyHealth", () => {
  test("idle is healthy for ever", async () => {
    const { clock, health } = twoFamilies();
    await clock.advance(86_400_000);
    expect(health.report().healthy).toBe(true);
  });

  test("a change that no sync applied in time is unhealthy, only in its family, until applied", async () => {
    const { clock, health } = twoFamilies();
    health.queued("IPv6");
    await clock.advance(59_999);
    expect(health.report().healthy).toBe(true);
    await clock.advance(1);
    expect(health.report().status).toMatchObject({ IPv4: { healthy: true }, IPv6: { healthy: false } });
    health.taken("IPv6");
    expect(health.report().healthy).toBe(false);
    health.updated("IPv6");
    expect(health.report().healthy).toBe(true);
  });

  test.each([3_600_000, -3_600_000])("a wall clock that jumps by %i ms changes no verdict", async (jump) => {
    const clock = new VirtualClock();
    let jumped = 0;
    const now = () => clock.now() + jumped;
    const health = new ProxyHealth(60_000, { now, monotonic: () => clock.monotonic() });
    health.started("IPv4");
    health.queued("IPv4");
    await clock.advance(30_000);
    jumped = jump;
    expect(health.report()).toMatchObject({ healthy: true, currentTime: now() });
    await clock.advance(30_000);
    expect(health.report().healthy).toBe(false);
    health.taken("IPv4");
    health.updated("IPv4");
    expect(health.report()).toMatchObject({ healthy: true, lastUpdated: now() });
  });

  test("a sync that takes long and gets on is healthy; one that stands still is not", async () => {
    const { clock, health } = twoFamilies();
    health.queued("IPv4");
    health.taken("IPv4");
    for (let step = 0; step < 20; step++) {
      await clock.advance(30_000);
      expect(health.report().healthy).toBe(true);
      health.progressed("IPv4");
    }
    await clock.advance(59_999);
    expect(health.report().healthy).toBe(true);
    await clock.advance(1);
    expect(health.report().status).toMatchObject({ IPv4: { healthy: false }, IPv6: { healthy: true } });
  });

  test("after such a sync its successor has as long for what was queued meanwhile", async () => {
    const { clock, health } = twoFamilies();
    health.queued("IPv4");
    health.taken("IPv4");
    await clock.advance(1_000);
    health.queued("IPv4");
    for (let step = 0; step < 3; step++) {
      await clock.advance(40_000);
      health.progressed("IPv4");
    }
    health.updated("IPv4");
    await clock.advance(1_000);
    expect(health.report().healthy).toBe(true);
    health.taken("IPv4");
    await clock.advance(40_000);
    expect(health.report().healthy).toBe(true);
  });

  test("steps of syncs that go on failing count for nothing", async () => {
    const { clock, health } = twoFamilies();
    health.queued("IPv4");
    for (let i = 0; i < 6; i++) {
      health.taken("IPv4");
      health.progressed("IPv4");
      await clock.advance(10_000);
      health.failed("IPv4");
    }
    health.taken("IPv4");
    health.progressed("IPv4");
    expect(health.report().healthy).toBe(false);
    health.updated("IPv4");
    expect(health.report().healthy).toBe(true);
  });

  test("a change during a sync waits from its own arrival, however many syncs succeed before", async () => {
    const { clock, health } = twoFamilies();
    health.queued("IPv4");
    health.taken("IPv4");
    await clock.advance(50_000);
    health.queued("IPv4");
    health.updated("IPv4");
    await clock.advance(59_999);
    expect(health.report().healthy).toBe(true);
    await clock.advance(1);
    expect(health.report().healthy).toBe(false);
  });
});

describe("the health port", () => {
  function port(eligible = true, served: readonly ("IPv4" | "IPv6")[] = ["IPv4", "IPv6"]) {
    const { clock, health } = twoFamilies();
    for (const family of served) health.updated(family);
    const answers: string[] = [];
    const app = healthApp({
      report: () => health.report(),
      nodeEligible: () => eligible,
      answered: (endpoint, code) => answers.push(`${endpoint} ${code}`),
    });
    return { clock, health, app, answers };
  }

  test("healthz and livez have upstream's shape", async () => {
    const { app, clock } = port();
    await clock.advance(1_500);
    const start = "2030-01-01T00:00:00Z";
    const now = "2030-01-01T00:00:01.5Z";
    const status = `"status":{"IPv4":{"lastUpdated":"${start}","healthy":true},"IPv6":{"lastUpdated":"${start}","healthy":true}}`;
    const healthz = await ask(app, "/healthz");
    expect(await healthz.text()).toBe(
      `{"lastUpdated":"${now}","currentTime":"${now}","nodeEligible":true,"healthy":true,${status}}`,
    );
    expect(Object.fromEntries(healthz.headers)).toEqual({
      "content-type": "application/json",
      "x-content-type-options": "nosniff",
    });
    expect(await (await ask(app, "/livez")).text()).toBe(
      `{"lastUpdated":"${now}","currentTime":"${now}","healthy":true,${status}}`,
    );
  });

  test("a node that goes away fails healthz, not livez", async () => {
    const { app, answers } = port(false);
    expect((await ask(app, "/healthz")).status).toBe(503);
    expect((await ask(app, "/livez")).status).toBe(200);
    expect(answers).toEqual(["healthz 503", "livez 200"]);
  });

  test("a family without its first rules fails healthz, which says so, not livez", async () => {
    const { app, health } = port(true, ["IPv6"]);
    const healthz = await ask(app, "/healthz");
    expect(healthz.status).toBe(503);
    expect(await healthz.json()).toMatchObject({ nodeEligible: true, rulesInPlace: false, healthy: true });
    expect((await ask(app, "/livez")).status).toBe(200);
    health.failed("IPv4");
    expect((await ask(app, "/healthz")).status).toBe(503);
    health.updated("IPv4");
    health.failed("IPv4");
    expect((await ask(app, "/healthz")).status).toBe(200);
  });

  test("a late change fails both and says when the last sync was", async () => {
    const { app, clock, health } = port();
    health.queued("IPv4");
    await clock.advance(60_000);
    const healthz = await ask(app, "/healthz");
    expect(healthz.status).toBe(503);
    expect(await healthz.json()).toMatchObject({
      lastUpdated: "2030-01-01T00:00:00Z",
      currentTime: "2030-01-01T00:01:00Z",
      nodeEligible: true,
      healthy: false,
    });
    expect((await ask(app, "/livez")).status).toBe(503);
  });
});

function check(port: number, localEndpoints: number): HealthCheck {
  return { service: "default/web", namespace: "default", name: "web", port, localEndpoints };
}

describe("health-check node ports", () => {
  test("the answer is upstream's, byte for byte", async () => {
    const app = serviceHealthApp(
      () => check(30_000, 2),
      () => true,
    );
    const answer = await ask(app, "/any/path");
    expect(answer.status).toBe(200);
    expect(await answer.text()).toBe(
      '{\n\t"service": {\n\t\t"namespace": "default",\n\t\t"name": "web"\n\t},\n\t"localEndpoints": 2,\n\t"serviceProxyHealthy": true\n}',
    );
    expect(Object.fromEntries(answer.headers)).toEqual({
      "content-type": "application/json",
      "x-content-type-options": "nosniff",
      "x-load-balancing-endpoint-weight": "2",
    });
  });

  test("503 without a local endpoint, and with one while the proxy is unhealthy", async () => {
    const without = serviceHealthApp(
      () => check(30_000, 0),
      () => true,
    );
    const unhealthy = serviceHealthApp(
      () => check(30_000, 1),
      () => false,
    );
    expect((await ask(without, "/")).status).toBe(503);
    const answer = await ask(unhealthy, "/");
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({ localEndpoints: 1, serviceProxyHealthy: false });
  });

  const one = (port: number) => new Map<ServiceKey, HealthCheck>([["default/web", check(port, 1)]]);

  /** Servers on addresses in memory, those in `refused` cannot be bound. */
  function listening(...refused: readonly string[]) {
    const clock = new VirtualClock();
    const busy = new Set(refused);
    const bound = new Set<string>();
    /** Every opening and closing, in order. */
    const moves: string[] = [];
    const reported: string[] = [];
    const servers = new ServiceHealthServers({
      family: "IPv4",
      clock,
      random: () => 1,
      proxyHealthy: () => true,
      async listen(_app, at) {
        const key = `${at.host}:${at.port}`;
        if (busy.has(key)) throw new Error("EADDRINUSE");
        if (bound.has(key)) throw new Error(`${key} is open already`);
        bound.add(key);
        moves.push(`+${key}`);
        return {
          address: at,
          async close() {
            bound.delete(key);
            moves.push(`-${key}`);
          },
        };
      },
      onOpened: (_check, { host, port }, wasRefused) => reported.push(`${wasRefused ? "at last " : ""}${host}:${port}`),
      onRefused: (_check, { host, port }, error) => reported.push(`${host}:${port} ${String(error)}`),
    });
    return { clock, busy, bound, moves, reported, servers };
  }

  test("ports open, follow and close with the plan", async () => {
    const { servers, moves } = listening();
    await servers.update(one(30_000), undefined);
    await servers.update(one(30_001), undefined);
    await servers.update(new Map(), ["192.0.2.2"]);
    expect(moves).toEqual(["+0.0.0.0:30000", "-0.0.0.0:30000", "+0.0.0.0:30001", "-0.0.0.0:30001"]);
  });

  test("node-port addresses that come and go do not affect the listeners of the others", async () => {
    const { servers, moves } = listening();
    await servers.update(one(30_000), ["192.0.2.1", "192.0.2.2"]);
    await servers.update(one(30_000), ["192.0.2.0", "192.0.2.2", "192.0.2.3"]);
    expect(moves).toEqual([
      "+192.0.2.1:30000",
      "+192.0.2.2:30000",
      "-192.0.2.1:30000",
      "+192.0.2.0:30000",
      "+192.0.2.3:30000",
    ]);
  });

  test("a service that chooses addresses is checked on those, and the others as before", async () => {
    const { servers, moves, bound } = listening();
    const other = { ...check(31_000, 1), name: "other" };
    const both = (chosen?: readonly string[]) =>
      new Map<ServiceKey, HealthCheck>([
        ["default/web", { ...check(30_000, 1), ...(chosen && { addresses: chosen }) }],
        ["default/other", other],
      ]);
    await servers.update(both(), ["192.0.2.1", "192.0.2.2"]);
    moves.length = 0;
    await servers.update(both(["192.0.2.2"]), ["192.0.2.1", "192.0.2.2"]);
    await servers.update(both([]), ["192.0.2.1", "192.0.2.2"]);
    expect(moves).toEqual(["-192.0.2.1:30000", "-192.0.2.2:30000"]);
    expect([...bound]).toEqual(["192.0.2.1:31000", "192.0.2.2:31000"]);
  });

  test("an address that cannot be bound yet keeps no other from answering, and is bound without another sync", async () => {
    const { servers, moves, busy, bound, clock } = listening("192.0.2.2:30000");
    await servers.update(one(30_000), ["192.0.2.1"]);
    await servers.update(one(30_000), ["192.0.2.1", "192.0.2.2", "192.0.2.3"]);
    expect(moves).toEqual(["+192.0.2.1:30000", "+192.0.2.3:30000"]);
    // A tentative IPv6 address takes about two seconds.
    await clock.advance(1_500);
    busy.clear();
    await clock.advance(2_000);
    expect([...bound]).toContain("192.0.2.2:30000");
    expect(moves).toHaveLength(3);
    expect(clock.pending.length).toBe(0);
  });

  test("a port in use is reported once, whatever the number of syncs, and again with another reason", async () => {
    const { servers, reported, busy, clock } = listening("0.0.0.0:30000");
    for (let sync = 0; sync < 5; sync++) await servers.update(one(30_000), undefined);
    await clock.advance(600_000);
    expect(reported).toEqual(["0.0.0.0:30000 Error: EADDRINUSE"]);
    busy.clear();
    await servers.update(one(30_000), undefined);
    expect(reported.slice(1)).toEqual(["at last 0.0.0.0:30000"]);
    await clock.advance(600_000);
    expect(reported).toHaveLength(2);
  });

  test("a port goes from one service to another in one update", async () => {
    const { servers, moves, reported } = listening();
    const other: HealthCheck = {
      service: "default/api",
      namespace: "default",
      name: "api",
      port: 30_000,
      localEndpoints: 1,
    };
    await servers.update(one(30_000), undefined);
    await servers.update(new Map([[other.service, other]]), undefined);
    expect(moves).toEqual(["+0.0.0.0:30000", "-0.0.0.0:30000", "+0.0.0.0:30000"]);
    expect(reported).toEqual(["0.0.0.0:30000", "0.0.0.0:30000"]);
  });

  test("after the close nothing is tried again", async () => {
    const { servers, moves, busy, clock } = listening("192.0.2.1:30000");
    await servers.update(one(30_000), ["192.0.2.1", "192.0.2.2"]);
    await servers.close();
    busy.clear();
    await clock.advance(600_000);
    await servers.update(one(30_000), ["192.0.2.1"]);
    expect(moves).toEqual(["+192.0.2.2:30000", "-192.0.2.2:30000"]);
    expect(clock.pending.length).toBe(0);
  });
});

describe("a node that load balancers may send to", () => {
  const node = { name: "node-a", addresses: [], podCIDRs: [], goingAway: false };

  test("with the API server it needs its Node object, with manifests it may do without", () => {
    const [api, manifests] = [new NodeEligibility(true), new NodeEligibility(false)];
    expect([api.eligible, manifests.eligible]).toEqual([false, true]);
    for (const one of [api, manifests]) one.set(node);
    expect([api.eligible, manifests.eligible]).toEqual([true, true]);
    for (const one of [api, manifests]) one.set({ ...node, goingAway: true });
    expect([api.eligible, manifests.eligible]).toEqual([false, false]);
    for (const one of [api, manifests]) one.set(undefined);
    expect([api.eligible, manifests.eligible]).toEqual([false, true]);
  });
});
