import { toEnd } from "@fairlead/base";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sortInSteps } from "../src/data.ts";
import { ClusterState, type EndpointSlice, Planner, type SliceEndpoint } from "../src/index.ts";
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

/** Calls `read` whenever a property of the copy is read. */
function watched<T extends object>(object: T, property: keyof T, read: () => void): T {
  const value = object[property];
  return Object.defineProperty({ ...object }, property, {
    enumerable: true,
    get: () => {
      read();
      return value;
    },
  });
}

function addressOf(number: number): string {
  return `10.${144 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
}

function endpoints(from: number, count: number, read: () => void = () => {}): SliceEndpoint[] {
  return Array.from({ length: count }, (_, i) => {
    const conditions = { ready: true, serving: true, terminating: false };
    return watched({ address: addressOf(from + i), ...conditions }, "address", read);
  });
}

describe("a service of very many slices", () => {
  /** Reads of names while slices come, in an order that is no order. */
  function readsFor(count: number): number {
    let reads = 0;
    const state = new ClusterState();
    for (let i = 0; i < count; i++) {
      const one = slice("web", endpoints(i, 1), { name: `web-${(i * 7919) % count}` });
      state.upsertSlice(watched<EndpointSlice>(one, "name", () => reads++));
    }
    expect(state.slices("default/web")).toHaveLength(count);
    return reads;
  }

  test("costs each slice that comes the same", () => {
    const [few, many] = [readsFor(1_000), readsFor(16_000)];
    // Sixteen times as many, and the depth of their order.
    expect(many / few).toBeLessThan(40);
  });

  test("has them in the order of their names, whatever came and went", () => {
    const moves = fc.array(fc.record({ comes: fc.boolean(), number: fc.integer({ min: 0, max: 60 }) }), {
      maxLength: 300,
    });
    fc.assert(
      fc.property(moves, (history) => {
        const state = new ClusterState();
        const there = new Set<string>();
        for (const { comes, number } of history) {
          const name = `s${number}`;
          if (comes) state.upsertSlice(slice("web", endpoints(number, 1), { name }));
          else state.deleteSlice("default", name);
          if (comes) there.add(name);
          else there.delete(name);
        }
        expect(state.slices("default/web").map((one) => one.name)).toEqual([...there].sort());
        expect([...state.keys()]).toEqual(there.size === 0 ? [] : ["default/web"]);
      }),
    );
  });
});

describe("a service of very many endpoints", () => {
  const SLICE = 100;

  function planned(count: number) {
    let reads = 0;
    const state = new ClusterState();
    state.upsertService(service("web", { healthCheckNodePort: 31_000 }));
    for (let at = 0; at < count; at += SLICE) {
      state.upsertSlice(
        slice(
          "web",
          endpoints(at, SLICE, () => reads++),
          { name: `web-${at}` },
        ),
      );
    }
    const planner = new Planner(OPTIONS);
    const steps = planner.replan(state, state.takeDirty().services, { get: () => undefined });
    const turns: number[] = [];
    reads = 0;
    for (let step = steps.next(); !step.done; step = steps.next()) {
      turns.push(reads);
      reads = 0;
    }
    expect(planner.plan("IPv4").groups.get("default/web/tcp")?.cluster).toHaveLength(count);
    return turns;
  }

  test("is planned in turns that do not grow with it, but for the one that decides whose it is", () => {
    const turns = planned(50_000).toSorted((a, b) => b - a);
    expect(turns.length).toBeGreaterThan(50);
    expect(turns[1]).toBeLessThanOrEqual(8_192);
  });

  test("costs each endpoint the same", () => {
    const sum = (turns: readonly number[]) => turns.reduce((a, b) => a + b, 0);
    expect(sum(planned(40_000)) / sum(planned(5_000))).toBeLessThan(8.5);
  });

  test("given up half way is planned anew", () => {
    const state = new ClusterState();
    const planner = new Planner(OPTIONS);
    const memory = { get: () => undefined };
    state.upsertService(service("web", { externalIPs: ["198.51.100.1"] }));
    for (let at = 0; at < 10_000; at += SLICE) {
      state.upsertSlice(slice("web", endpoints(at, SLICE), { name: `web-${at}` }));
    }
    const given = planner.replan(state, state.takeDirty().services, memory);
    for (let i = 0; i < 3; i++) expect(given.next().done).toBe(false);
    given.return({ changes: new Map(), memory: [], ownershipChanges: [], released: [], problems: [], notices: [] });
    toEnd(planner.replan(state, [], memory));
    expect(planner.lookup("IPv4").at("TCP", "198.51.100.1", 80)?.cluster).toHaveLength(10_000);
    state.deleteService("default", "web");
    toEnd(planner.replan(state, state.takeDirty().services, memory));
    expect(planner.lookup("IPv4").at("TCP", "198.51.100.1", 80)).toBeUndefined();
  });
});

test("sorting in steps is sorting, and keeps what is equal in its order", () => {
  const items = fc.array(fc.record({ key: fc.integer({ min: 0, max: 50 }), at: fc.nat() }), { maxLength: 400 });
  fc.assert(
    fc.property(items, fc.integer({ min: 1, max: 20 }), (list, run) => {
      expect(toEnd(sortInSteps(list, (a, b) => a.key - b.key, run))).toEqual(list.toSorted((a, b) => a.key - b.key));
    }),
  );
});
