import { describe, expect, test } from "vitest";
import { ClusterState, Planner } from "../src/index.ts";
import { endpoint, Memory, OPTIONS, service, slice } from "./objects.ts";

const ENDPOINTS = 10;

/** A planned cluster of so many services, which counts the addresses that are read and the turns that are given. */
function world(services: number) {
  const state = new ClusterState();
  const planner = new Planner(OPTIONS);
  const memory = new Memory();
  const cost = { reads: 0, turns: 0 };
  const put = (number: number, endpoints: number) => {
    const list = Array.from({ length: endpoints }, (_, i) => {
      const address = `10.${144 + (number >> 8)}.${number & 255}.${i}`;
      return Object.defineProperty({ ...endpoint(address) }, "address", {
        enumerable: true,
        get: () => {
          cost.reads++;
          return address;
        },
      });
    });
    state.upsertSlice(slice(`s${number}`, list));
  };
  const replan = () => {
    Object.assign(cost, { reads: 0, turns: 0 });
    const steps = planner.replan(state, state.takeDirty().services, memory);
    for (let step = steps.next(); ; step = steps.next()) {
      if (!step.done) cost.turns++;
      else {
        memory.take(step.value);
        return { ...cost, changed: step.value.changes.get("IPv4")?.groups.size };
      }
    }
  };
  for (let number = 0; number < services; number++) {
    state.upsertService(service(`s${number}`, { clusterIPs: [`10.96.${number >> 8}.${number & 255}`] }));
    put(number, ENDPOINTS);
  }
  return { put, replan };
}

describe("a cluster of very many services", () => {
  test("costs each of them the same", () => {
    const [few, many] = [world(500).replan(), world(4_000).replan()];
    expect(many.changed).toBe(4_000);
    expect(many.reads / few.reads).toBeLessThan(8.1);
    expect(many.turns / few.turns).toBeLessThan(8.1);
  });

  test("a change of one costs as much as in a small cluster", () => {
    const [small, large] = [world(10), world(4_000)];
    for (const one of [small, large]) {
      one.replan();
      one.put(7, ENDPOINTS - 1);
    }
    const cost = large.replan();
    expect(cost).toEqual(small.replan());
    expect(cost.changed).toBe(1);
  });
});
