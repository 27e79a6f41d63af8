import { sleep } from "@fairlead/base";
import { VirtualClock } from "@fairlead/base/testing";
import type { AgentStatus, Flow } from "@fairlead/inspect";
import type { ObjectSource, SourceReport } from "@fairlead/watch";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FlowRates, SourceHealth } from "../src/index.ts";
import { NodePoller, type NodeReading, shownFlows } from "../src/model/nodes.ts";
import { Events, LiveObjects, shop } from "./support/objects.ts";
import { addressOf, cookieOf, openConsole } from "./support/page.ts";

const HEALTHY: AgentStatus = { mode: "iptables", healthy: true };

function scene() {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const seen: [string, NodeReading][] = [];
  let stopped = false;
  let kernelTakes = 0;
  let traffic = 0;
  const looks = new NodePoller({
    clock,
    now: () => clock.now(),
    ports: {
      reaches: (node) => node !== "far-away",
      kernel: async (node) => {
        asked.push(node);
        if (kernelTakes > 0) await sleep(clock, kernelTakes);
        return [{ family: "IPv4", services: [] }];
      },
      agent: async () => {
        if (stopped) throw new Error("http://127.0.0.1:10249 does not answer");
        return HEALTHY;
      },
      traffic: async () => {
        traffic += 1;
        return { ways: [] };
      },
    },
    onLook: (node, looked) => seen.push([node, looked]),
  });
  return {
    clock,
    asked,
    seen,
    looks,
    traffic: () => traffic,
    stopAgent: () => {
      stopped = true;
    },
    slowKernel: (ms: number) => {
      kernelTakes = ms;
    },
  };
}

test("nodes that no page has in view are not looked at", async () => {
  const { clock, asked, looks } = scene();
  await clock.advance(10_000);
  expect(asked).toEqual([]);
  looks.view("1", ["node-a"]);
  looks.view("2", ["node-a", "node-b", "far-away"]);
  await clock.advance(0);
  expect(asked).toEqual(["node-a", "node-b"]);
  looks.view("1", []);
  looks.view("2", []);
  await clock.advance(10_000);
  expect(asked).toEqual(["node-a", "node-b"]);
});

test("a node in view is looked at at least every other second", async () => {
  const { clock, asked, looks } = scene();
  looks.view("1", ["node-a"]);
  await clock.advance(10_000);
  expect(asked.length).toBeGreaterThanOrEqual(6);
  looks.stop();
});

test("what is asked for is known until it is answered, and no longer once no page waits", async () => {
  const { clock, looks, slowKernel } = scene();
  await clock.advance(5_000);
  slowKernel(60_000);
  looks.view("1", ["node-a", "far-away"]);
  await clock.advance(1_000);
  expect(looks.of("node-a")).toMatchObject({
    agent: { state: "read" },
    kernel: { state: "asking", at: clock.now() - 1_000 },
  });
  expect(looks.of("far-away")).toEqual({});
  looks.stop();
  expect(looks.of("node-a").kernel).toBeUndefined();
});

test("connections are summed up for the pages that show them only", async () => {
  const { clock, looks, traffic } = scene();
  looks.view("1", ["node-a"]);
  await clock.advance(10_000);
  expect(traffic()).toBe(0);
  looks.view("2", ["node-a"], ["traffic"]);
  await clock.advance(0);
  expect(looks.of("node-a").traffic).toMatchObject({ state: "read", value: { ways: [] } });
  looks.view("2", []);
  await clock.advance(10_000);
  expect(traffic()).toBe(1);
  looks.stop();
});

test("an agent that stopped is reported with the time and why, and the kernel next to it", async () => {
  const { clock, looks, stopAgent } = scene();
  looks.view("1", ["node-a"]);
  await clock.advance(0);
  expect(looks.of("node-a").agent).toMatchObject({ state: "read", value: HEALTHY });
  stopAgent();
  await clock.advance(2_000);
  expect(looks.of("node-a")).toMatchObject({
    agent: { state: "failed", error: "http://127.0.0.1:10249 does not answer" },
    kernel: { state: "read" },
  });
  looks.stop();
});

test("an agent is asked while its kernel is still being read", async () => {
  const { clock, looks, stopAgent, slowKernel } = scene();
  slowKernel(60_000);
  looks.view("1", ["node-a"]);
  await clock.advance(0);
  expect(looks.of("node-a").agent).toMatchObject({ state: "read" });
  stopAgent();
  await clock.advance(2_000);
  expect(looks.of("node-a").agent).toMatchObject({ state: "failed" });
  looks.stop();
});

describe("flows", () => {
  const flow = (at: number, condition: "ready" | "gone" = "ready"): Flow => ({
    family: "IPv4",
    protocol: "TCP",
    client: { address: "10.144.1.9", port: 1_024 + at },
    frontend: { kind: "cluster-ip", address: `10.96.${at >> 8}.${at & 255}`, port: 80 },
    service: `shop/s-${at}`,
    port: "",
    owner: "ours",
    endpoint: { address: "10.144.1.5", port: 8080, condition },
    replied: true,
  });

  test("all of a few, nothing left out", () => {
    const shown = shownFlows([flow(1), flow(2)]);
    expect(shown).toMatchObject({ flows: [flow(1), flow(2)], more: { services: 0, flows: 0 } });
    expect(shown.traffic.map(({ service, connections }) => [service, connections])).toEqual([
      ["shop/s-1", 1],
      ["shop/s-2", 1],
    ]);
  });

  test("of many those that hang come first, and what is left out is counted", () => {
    const many = [...Array.from({ length: 1_000 }, (_, at) => flow(at)), flow(1_000, "gone")];
    const { traffic, flows, more } = shownFlows(many);
    expect(flows[0]?.endpoint?.condition).toBe("gone");
    expect([traffic.length + more.services, flows.length + more.flows]).toEqual([1_001, 1_001]);
    expect(traffic.length).toBe(200);
  });
});

describe("flow rates", () => {
  const flow = (port: number, bytes?: number): Flow => ({
    family: "IPv4",
    protocol: "TCP",
    client: { address: "10.144.1.9", port },
    frontend: { kind: "cluster-ip", address: "10.96.0.10", port: 80 },
    service: "shop/web",
    port: "http",
    owner: "ours",
    replied: true,
    ...(bytes !== undefined && { sent: { bytes, packets: 1 }, received: { bytes, packets: 1 } }),
  });

  test("connections that are new, and what all have carried since the look before", () => {
    const rates = new FlowRates();
    expect(rates.take("node-a", [flow(1, 100), flow(2, 10)], 1_000).since).toBeUndefined();
    expect(rates.take("node-a", [flow(1, 150), flow(3, 7)], 3_000).since).toEqual({ ms: 2_000, opened: 1, bytes: 114 });
    // Another one from the same port has carried less.
    expect(rates.take("node-a", [flow(1, 20), flow(3, 7)], 5_000).since).toEqual({ ms: 2_000, opened: 1, bytes: 40 });
    expect(rates.take("node-a", [], 7_000).since).toEqual({ ms: 2_000, opened: 0, bytes: 0 });
  });

  test("what came is counted once for all pages, so that no page takes it from another", () => {
    const rates = new FlowRates();
    const counts = (ports: readonly number[], at: number) =>
      rates.take(
        "node-a",
        ports.map((port) => flow(port, 100)),
        at,
      ).counts;
    const first = counts([1], 1_000);
    counts([1, 2], 2_000);
    expect(first).toEqual({ began: 1_000, opened: 0, bytes: 0 });
    expect(counts([1, 2], 3_000)).toEqual({ began: 1_000, opened: 1, bytes: 200 });
    expect(counts([1, 2, 3], 60_000)).toEqual({ began: 60_000, opened: 0, bytes: 0 });
  });

  test("a kernel that does not count bytes", () => {
    const rates = new FlowRates();
    rates.take("node-a", [flow(1)], 0);
    expect(rates.take("node-a", [flow(1), flow(2)], 2_000).since).toEqual({ ms: 2_000, opened: 1 });
  });

  test("after a long pause it begins anew, and what is looked at apart is counted apart", () => {
    const rates = new FlowRates();
    rates.take("node-a", [], 0);
    expect(rates.take("node-a", [flow(1, 1)], 60_000).since).toBeUndefined();
    expect(rates.take("node-a shop/web", [flow(1, 1)], 61_000).since).toBeUndefined();
    expect(rates.take("node-a", [flow(1, 1)], 62_000).since).toEqual({ ms: 2_000, opened: 0, bytes: 0 });
    for (let node = 0; node < 8; node += 1) rates.take(`node ${node}`, [], 62_000);
    expect(rates.take("node-a", [], 63_000).since).toBeUndefined();
  });

  test("whatever comes and goes, as many are opened as were not there", () => {
    const ports = fc.uniqueArray(fc.integer({ min: 1, max: 20 }));
    fc.assert(
      fc.property(ports, ports, (before, after) => {
        const rates = new FlowRates();
        rates.take(
          "n",
          before.map((port) => flow(port, 5)),
          0,
        );
        const now = rates.take(
          "n",
          after.map((port) => flow(port, 9)),
          1_000,
        ).since;
        const fresh = after.filter((port) => !before.includes(port)).length;
        expect(now).toEqual({ ms: 1_000, opened: fresh, bytes: fresh * 18 + (after.length - fresh) * 8 });
      }),
    );
  });
});

const refused: SourceReport = {
  type: "failing",
  problem: "refused",
  server: "https://10.0.0.1:6443",
  address: "10.0.0.1",
  milliseconds: 500,
  error: "403 services is forbidden",
  resources: ["services"],
};
const failing = {
  problem: "refused",
  server: "https://10.0.0.1:6443",
  error: "403 services is forbidden",
  resources: ["services"],
  since: 9_500,
};

async function opened(source: ObjectSource) {
  const health = new SourceHealth(() => 10_000);
  const running = await openConsole(source, "", { health });
  const { base } = addressOf(running.url);
  const cookie = await cookieOf(running.url);
  return { health, running, open: () => Events.open(base, { cookie }) };
}

test("a page that waits for the first objects is given the reason, and each other one", async () => {
  const never: ObjectSource = {
    run: (_to, signal) => new Promise((end) => signal.addEventListener("abort", () => end())),
  };
  const { health, running, open } = await opened(never);
  await using _running = running;
  health.take(refused);
  await using events = await open();
  const [first] = await events.until(({ name }) => name === "source");
  expect(first?.data).toEqual({ failing });
  health.take({ ...refused, error: "403 endpointslices is forbidden" });
  const [second] = await events.until(({ name }) => name === "source");
  expect(second?.data).toMatchObject({ failing: { error: "403 endpointslices is forbidden" } });
});

test("a page that is open is given when the server stops answering, and when it answers again", async () => {
  const { health, running, open } = await opened(new LiveObjects(shop));
  await using _running = running;
  await using events = await open();
  const [begin] = await events.until(({ name }) => name === "whole");
  expect(begin?.data["source"]).toEqual({});
  health.take({ ...refused, problem: "unreachable" });
  const isSource = ({ name }: { readonly name: string }) => name === "source";
  expect((await events.until(isSource)).at(-1)?.data).toEqual({ failing: { ...failing, problem: "unreachable" } });
  await using later = await open();
  expect((await later.until(({ name }) => name === "begin"))[0]?.data["source"]).toMatchObject({ failing: {} });
  health.take({ type: "recovered", server: "https://10.0.0.1:6443", milliseconds: 700 });
  expect((await events.until(isSource)).at(-1)?.data).toEqual({});
});

test("Nodes that may not be listed are reported, and do not keep the services back", async () => {
  const objects = new LiveObjects(shop, { Node: "forbidden" });
  const { running, open } = await opened(objects);
  await using _running = running;
  await using events = await open();
  const [begin] = await events.until(({ name }) => name === "whole");
  expect(begin?.data).toMatchObject({ services: 5, source: { nodesForbidden: true }, nodes: [{ node: "node-a" }] });
});
