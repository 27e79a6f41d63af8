import type { HealthCheck, ServiceKey } from "@fairlead/core";
import { describe, expect, test } from "vitest";
import { NodeEligibility } from "../src/agent/eligibility.ts";
import { healthApp } from "../src/health/app.ts";
import { ProxyHealth } from "../src/health/proxy-health.ts";
import { serviceHealthApp } from "../src/health/service-app.ts";
import { ServiceHealthServers } from "../src/health/service-health.ts";
import { ask } from "./support/ask.ts";
import { VirtualClock } from "./support/virtual-clock.ts";

function twoFamilies(timeout = 60_000) {
  const clock = new VirtualClock();
  const health = new ProxyHealth(timeout, () => clock.now());
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

  test("a change that no sync applied in time is unhealthy, in its family alone, until applied", async () => {
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

  test("a failed sync does not reset the waiting time", async () => {
    const { clock, health } = twoFamilies();
    health.queued("IPv4");
    for (let i = 0; i < 6; i++) {
      health.taken("IPv4");
      await clock.advance(10_000);
    }
    expect(health.report().healthy).toBe(false);
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
  function port(eligible = true) {
    const { clock, health } = twoFamilies();
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

  test("a late change fails both and tells when the last sync was", async () => {
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

  test("ports open, follow and close with the plan, and a port in use is tried again", async () => {
    const bound = new Set<string>();
    const errors: string[] = [];
    const busy = new Set<number>([30_001]);
    const servers = new ServiceHealthServers({
      family: "IPv4",
      proxyHealthy: () => true,
      async listen(_app, at) {
        if (busy.has(at.port)) throw new Error("EADDRINUSE");
        const key = `${at.host}:${at.port}`;
        bound.add(key);
        return {
          address: at,
          async close() {
            bound.delete(key);
          },
        };
      },
      onOpened: () => {},
      onError: (failed, at) => errors.push(`${failed.service} ${at.host}:${at.port}`),
    });
    const one = (port: number) => new Map<ServiceKey, HealthCheck>([["default/web", check(port, 1)]]);

    await servers.update(one(30_000), undefined);
    expect([...bound]).toEqual(["0.0.0.0:30000"]);
    await servers.update(one(30_001), undefined);
    expect([...bound]).toEqual([]);
    expect(errors).toEqual(["default/web 0.0.0.0:30001"]);
    busy.clear();
    await servers.update(one(30_001), ["192.0.2.1", "192.0.2.2"]);
    expect([...bound]).toEqual(["192.0.2.1:30001", "192.0.2.2:30001"]);
    await servers.update(one(30_001), ["192.0.2.2"]);
    expect([...bound]).toEqual(["192.0.2.2:30001"]);
    await servers.update(new Map(), ["192.0.2.2"]);
    expect([...bound]).toEqual([]);
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
