import { iptablesFacts } from "@fairlead/backend-iptables";
import { createTraffic } from "@fairlead/backend-userspace";
import { IP_FAMILIES, toEnd } from "@fairlead/base";
import { VirtualClock } from "@fairlead/base/testing";
import { ClusterState, decodeEndpointSlice, decodeService, Planner } from "@fairlead/core";
import { FakeTracking } from "@fairlead/kernel/fake";
import { describe, expect, test } from "vitest";
import { type ConnectionReaderParts, connectionReader } from "../src/connections.ts";
import type { ServiceConnections } from "../src/metrics/service-metrics.ts";
import { A, api, B, HTTP, other, slice, tracked, web } from "./support/connections.ts";
import { recordedLog } from "./support/fake-node.ts";

function planned(nodePortAddress?: string): Planner {
  const state = new ClusterState();
  for (const raw of [web, api, other]) {
    const { object } = decodeService(raw);
    if (object !== undefined) state.upsertService(object);
  }
  const { object } = decodeEndpointSlice(slice);
  if (object !== undefined) state.upsertSlice(object);
  const planner = new Planner({
    nodeName: "node-a",
    families: IP_FAMILIES,
    nodeIPs: {},
    detectors: {},
    nodePortAddresses: nodePortAddress === undefined ? {} : { IPv4: { kind: "list", addresses: [nodePortAddress] } },
    masqueradeAll: false,
    semantics: iptablesFacts.semantics,
  });
  toEnd(planner.replan(state, "all", { get: () => undefined }));
  return planner;
}

function reading(others: Partial<ConnectionReaderParts> = {}) {
  const tracking = new FakeTracking();
  const [clock, log] = [new VirtualClock(), recordedLog()];
  const read = connectionReader({
    settings: { namespaces: "all", maxSeries: 2_000 },
    planner: planned(),
    tracking: async () => tracking,
    clock,
    log,
    ...others,
  });
  return { tracking, clock, log, read };
}

const seriesOf = (read: ServiceConnections | undefined) =>
  (read?.series ?? []).map((one) => Object.values(one).join(" "));

describe("what is counted", () => {
  test("by service port and endpoint: every frontend, both families, endpoints that are gone", async () => {
    const { tracking, read } = reading();
    tracking.connections = [
      tracked(HTTP, A),
      tracked(HTTP, A, { state: "ESTABLISHED" }),
      tracked(HTTP, B),
      tracked(["fd00:10:96::a", 80], ["fd00:144::6", 8_080]),
      tracked(["10.201.0.10", 30_080], A, { client: "198.51.100.7" }),
      tracked(["10.96.0.10", 53], ["10.144.2.8", 53], { protocol: "UDP" }),
      tracked(["10.96.0.11", 443], ["10.144.2.9", 6_443]),
    ];
    expect(seriesOf(await read())).toEqual([
      "shop api  10.144.2.9:6443 1",
      "shop web http 10.144.2.6:8080 3",
      "shop web http 10.144.2.7:8080 1",
      "shop web http [fd00:144::6]:8080 1",
      "shop web dns 10.144.2.8:53 1",
    ]);
  });

  test("not what is over, what no proxy translated, what no service has, nor a port's number on another address", async () => {
    const { tracking, clock, read } = reading({ planner: planned("10.201.0.10") });
    tracking.connections = [
      tracked(HTTP, A, { state: "TIME_WAIT" }),
      tracked(HTTP, A, { state: "CLOSE" }),
      tracked(HTTP, HTTP),
      tracked(["203.0.113.9", 80], A),
      tracked(["10.96.0.10", 81], A),
      tracked(["10.96.0.10", 80], A, { protocol: "UDP" }),
      tracked(["203.0.113.9", 30_080], A),
    ];
    expect(await read()).toEqual({ series: [], leftOut: 0 });
    tracking.connections = [tracked(["10.201.0.10", 30_080], A)];
    await clock.advance(6_000);
    expect(seriesOf(await read())).toHaveLength(1);
  });

  test("of the namespaces that are asked for", async () => {
    const { tracking, read } = reading({ settings: { namespaces: ["other", "othe"], maxSeries: 2_000 } });
    tracking.connections = [tracked(HTTP, A), tracked(["10.96.0.12", 80], B)];
    expect(seriesOf(await read())).toEqual(["other web  10.144.2.7:8080 1"]);
  });

  test("by the relays' own endpoints where this process carries the traffic", async () => {
    const relays = createTraffic();
    const relay = ["10.201.0.10", 20_001] as const;
    const nothing = () => {};
    relays.add({
      end: nothing,
      destroy: nothing,
      relayed: () => ({
        protocol: "TCP",
        client: { address: "10.144.1.9", port: 40_000 },
        relay: { address: relay[0], port: relay[1] },
        endpoint: { address: A[0], port: A[1] },
      }),
    });
    const { tracking, read } = reading({ relays });
    tracking.connections = [tracked(HTTP, relay), tracked(HTTP, relay, { port: 40_001 })];
    expect(seriesOf(await read())).toEqual(["shop web http 10.144.2.6:8080 1"]);
  });
});

describe("what it costs", () => {
  test("one reading for all requests within five seconds, and none without a request", async () => {
    const { tracking, clock, read } = reading();
    await clock.advance(60_000);
    expect(tracking.listings).toBe(0);
    tracking.connections = [tracked(HTTP, A)];
    const [first, second] = await Promise.all([read(), read()]);
    expect(first).toBe(second);
    tracking.connections = [];
    await clock.advance(4_900);
    expect(seriesOf(await read())).toHaveLength(1);
    expect(tracking.listings).toBe(1);
    await clock.advance(200);
    expect(seriesOf(await read())).toEqual([]);
    expect(tracking.listings).toBe(2);
  });

  test("the event loop has its turns while many connections are read", async () => {
    const { tracking, read } = reading();
    tracking.connections = Array.from({ length: 100_000 }, () => tracked(HTTP, A));
    let turns = 0;
    let done = false;
    const said = read().finally(() => {
      done = true;
    });
    while (!done) {
      await new Promise(setImmediate);
      turns += 1;
    }
    expect(seriesOf(await said)).toEqual(["shop web http 10.144.2.6:8080 100000"]);
    expect(turns).toBeGreaterThan(3);
  });

  test("a service is reported with all of its series or not at all; the log says once that some are not", async () => {
    const { tracking, clock, log, read } = reading({ settings: { namespaces: "all", maxSeries: 2 } });
    tracking.connections = [
      tracked(["10.96.0.12", 80], B),
      ...[A, B].map((endpoint) => tracked(HTTP, endpoint)),
      tracked(["10.96.0.11", 443], A),
    ];
    const said = await read();
    expect(seriesOf(said)).toEqual(["other web  10.144.2.7:8080 1", "shop api  10.144.2.6:8080 1"]);
    expect(said?.leftOut).toBe(1);
    await clock.advance(10_000);
    expect((await read())?.leftOut).toBe(1);
    expect(log.lines).toEqual([
      { level: "warn", message: expect.stringContaining("Too many"), fields: { leftOut: 1, maxSeries: 2 } },
    ]);
  });

  test("tracking that cannot be read is reported once, until it could be", async () => {
    const { tracking, clock, log, read } = reading();
    const readLater = async () => {
      await clock.advance(6_000);
      return read();
    };
    tracking.failure = new Error("not permitted");
    expect(await readLater()).toBeUndefined();
    expect(await readLater()).toBeUndefined();
    expect(log.lines.map(({ fields }) => fields)).toEqual([{ error: "not permitted" }]);
    tracking.failure = undefined;
    expect(await readLater()).toEqual({ series: [], leftOut: 0 });
    tracking.failure = new Error("gone");
    expect(await readLater()).toBeUndefined();
    expect(log.lines).toHaveLength(2);
  });
});
