import { sleep } from "@fairlead/base";
import { VirtualClock } from "@fairlead/base/testing";
import type { AgentStatus } from "@fairlead/inspect";
import { expect, test } from "vitest";
import { NodePoller, type NodeReading } from "../src/model/node-poller.ts";

const HEALTHY: AgentStatus = { mode: "iptables", healthy: true };

function scene() {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const seen: [string, NodeReading][] = [];
  let stopped = false;
  let kernelTakes = 0;
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
    },
    onLook: (node, looked) => seen.push([node, looked]),
  });
  return {
    clock,
    asked,
    seen,
    looks,
    stopAgent: () => {
      stopped = true;
    },
    slowKernel: (ms: number) => {
      kernelTakes = ms;
    },
  };
}

test("nodes that nobody has in view are not looked at", async () => {
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

test("an agent that stopped is told with the time and why, and the kernel beside it", async () => {
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
