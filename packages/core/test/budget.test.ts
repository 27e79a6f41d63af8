import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { ClusterState, decodeEndpointSlice, Planner } from "../src/index.ts";
import { Memory, OPTIONS, replan } from "./objects.ts";
import { clusterJSON, decodeInto, rawSlice } from "./yardstick.ts";

const SERVICES = 10_000;
const ENDPOINTS = 10;

setFlagsFromString("--expose-gc");
const collectGarbage: unknown = runInNewContext("gc");

function heapUsed(): number {
  if (typeof collectGarbage === "function") collectGarbage();
  return process.memoryUsage().heapUsed;
}

function timed(work: () => void): number {
  const start = performance.now();
  work();
  return performance.now() - start;
}

/**
 * The limits stand far from what is measured (`pnpm bench --micro`), so that a slow machine passes and a wrong order of
 * growth doesn't.
 */
test("10,000 services × 10 endpoints stay within the budget", () => {
  const text = clusterJSON(SERVICES, ENDPOINTS);
  const before = heapUsed();
  const state = new ClusterState();
  const planner = new Planner(OPTIONS);
  const memory = new Memory();
  decodeInto(state, JSON.parse(text.services), JSON.parse(text.slices));
  expect(timed(() => replan(planner, state, memory))).toBeLessThan(20_000);
  expect(planner.plan("IPv4").endpointCount).toBe(SERVICES * ENDPOINTS);
  expect(heapUsed() - before).toBeLessThan(40e6);

  const changes = Array.from({ length: 51 }, (_, i) =>
    timed(() => {
      const { object } = decodeEndpointSlice(rawSlice(i * 97, ENDPOINTS - 1));
      if (object !== undefined) state.upsertSlice(object);
      expect(replan(planner, state, memory).changes.get("IPv4")?.groups.size).toBe(1);
    }),
  );
  expect(changes.toSorted((a, b) => a - b)[25]).toBeLessThan(100);
  expect(text.services.length).toBeGreaterThan(0);
});
