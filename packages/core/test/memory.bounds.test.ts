import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { ClusterState, Planner } from "../src/index.ts";
import { Memory, OPTIONS, replan } from "./objects.ts";
import { clusterJSON, decodeInto } from "./yardstick.ts";

const SERVICES = 10_000;
const ENDPOINTS = 10;

setFlagsFromString("--expose-gc");
const collectGarbage: unknown = runInNewContext("gc");

/** What stays after a collection: however busy the machine is, and in a process without other tests. */
function heapUsed(): number {
  if (typeof collectGarbage === "function") collectGarbage();
  return process.memoryUsage().heapUsed;
}

test("10,000 services × 10 endpoints and their plan take less than 40 MB", () => {
  const text = clusterJSON(SERVICES, ENDPOINTS);
  const before = heapUsed();
  const state = new ClusterState();
  const planner = new Planner(OPTIONS);
  const memory = new Memory();
  decodeInto(state, JSON.parse(text.services), JSON.parse(text.slices));
  replan(planner, state, memory);
  expect(heapUsed() - before).toBeLessThan(40e6);
  expect(planner.plan("IPv4").endpointCount).toBe(SERVICES * ENDPOINTS);
  expect(text.services.length).toBeGreaterThan(0);
});
