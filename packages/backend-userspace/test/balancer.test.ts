import type { PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Balancer, endpointKey } from "../src/relay/balancer.ts";
import { serveSets } from "./support/servers.ts";

const endpoints = (count: number, first = 1): PlanEndpoint[] =>
  Array.from({ length: count }, (_, index) => ({ address: `10.144.1.${first + index}`, port: 8080, local: false }));
const none = new Set<string>();

type Sets = Pick<ServicePortGroup, "cluster" | "affinitySeconds" | "weights">;

function balancer(sets: Sets) {
  const clock = { now: 0 };
  const made = new Balancer(() => clock.now);
  serveSets(made, { local: [], ...sets });
  return { made, clock };
}

test("a hundred thousand endpoints are taken up in many steps, and each connection costs the same", () => {
  const reads = { count: 0 };
  const cluster = Array.from({ length: 100_000 }, (_, at): PlanEndpoint => {
    const address = `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`;
    return Object.defineProperty({ address, port: 8080, local: false }, "address", {
      get: () => {
        reads.count++;
        return address;
      },
    });
  });
  const made = new Balancer(() => 0);
  const steps = made.update({ cluster, local: [], affinitySeconds: 60 });
  let most = 0;
  for (let done = false; !done; reads.count = 0) {
    done = steps.next().done === true;
    most = Math.max(most, reads.count);
  }
  expect(most).toBe(1);
  for (let client = 0; client < 10; client++) {
    const first = made.choose("cluster", `10.144.0.${client}`, none);
    expect(made.choose("cluster", `10.144.0.${client}`, none)).toBe(first);
    expect(first && made.has("cluster", first)).toBe(true);
  }
  expect(reads.count).toBeLessThan(100);
});

test("clients are looked at one in a step when endpoints go, and choose anew at once", () => {
  const { made } = balancer({ cluster: endpoints(2), affinitySeconds: 60 });
  for (let client = 0; client < 1_000; client++) made.choose("cluster", `10.144.0.${client}`, none);
  const steps = made.update({ cluster: endpoints(1, 3), local: [], affinitySeconds: 60 });
  let most = 0;
  for (let before = made.clients; steps.next().done !== true; before = made.clients) {
    most = Math.max(most, before - made.clients);
    if (before === 900) expect(made.choose("cluster", "10.144.0.999", none)).toEqual(endpoints(1, 3)[0]);
  }
  expect(most).toBe(1);
  expect(made.clients).toBe(1);
});

describe("round robin", () => {
  test("no endpoint has more than one client more than another", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 7 }), fc.integer({ min: 0, max: 50 }), (count, clients) => {
        const { made } = balancer({ cluster: endpoints(count) });
        const shares = new Map<string, number>();
        for (let client = 0; client < clients; client++) {
          const key = endpointKey(made.choose("cluster", "same", none));
          shares.set(key, (shares.get(key) ?? 0) + 1);
        }
        const counts = endpoints(count).map((endpoint) => shares.get(endpointKey(endpoint)) ?? 0);
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
      }),
    );
  });

  test("an endpoint that failed is passed over, and taken again when all have failed", () => {
    const [a, b] = endpoints(2);
    const { made } = balancer({ cluster: endpoints(2) });
    expect(made.choose("cluster", "x", new Set([endpointKey(a)]))).toEqual(b);
    expect(made.choose("cluster", "x", new Set([endpointKey(a)]))).toEqual(b);
    expect(made.choose("cluster", "x", new Set([endpointKey(a), endpointKey(b)]))).toBeDefined();
  });

  test("no endpoint where there is none", () => {
    expect(balancer({ cluster: [] }).made.choose("cluster", "x", none)).toBeUndefined();
  });
});

describe("endpoints that do not weigh alike", () => {
  const weighed = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 });

  test("have as many turns in a round as they weigh, and the rest is refused", () => {
    fc.assert(
      fc.property(weighed, fc.nat({ max: 30 }), fc.nat({ max: 500 }), (weights, refused, before) => {
        const cluster = endpoints(weights.length);
        const { made } = balancer({ cluster, weights: { cluster: { endpoints: weights, refused } } });
        for (let turn = 0; turn < before; turn++) made.choose("cluster", "x", none);
        const round = weights.reduce((sum, weight) => sum + weight, refused);
        const chosen = Array.from({ length: round }, () => made.choose("cluster", "x", none));
        expect(cluster.map((one) => chosen.filter((other) => other === one).length)).toEqual(weights);
      }),
    );
  });

  test("take turns, none of them many in a row", () => {
    const [rare] = endpoints(2);
    const { made } = balancer({ cluster: endpoints(2), weights: { cluster: { endpoints: [1, 9] } } });
    const chosen = Array.from({ length: 100 }, () => made.choose("cluster", "x", none)?.address === rare?.address);
    const gaps = chosen.flatMap((is, at) => (is ? at : [])).map((at, index, all) => at - (all[index - 1] ?? at - 10));
    expect(gaps.every((gap) => gap === 10)).toBe(true);
  });

  test("a client whose endpoint failed is not refused", () => {
    const [a, b] = endpoints(2);
    const weights = { cluster: { endpoints: [1, 1], refused: 98 } };
    const { made } = balancer({ cluster: endpoints(2), weights });
    for (let turn = 0; turn < 10; turn++) expect(made.choose("cluster", "x", new Set([endpointKey(a)]))).toEqual(b);
  });
});

describe("ClientIP affinity", () => {
  test("a client stays until it was away for the timeout", () => {
    const { made, clock } = balancer({ cluster: endpoints(3), affinitySeconds: 60 });
    const first = made.choose("cluster", "10.0.0.1", none);
    for (let time = 0; time <= 300_000; time += 59_000) {
      clock.now = time;
      made.choose("cluster", "10.0.0.2", none);
      expect(made.choose("cluster", "10.0.0.1", none)).toEqual(first);
    }
    clock.now += 60_000;
    expect(made.choose("cluster", "10.0.0.1", none)).not.toEqual(first);
  });

  test("both sets have one memory", () => {
    const made = new Balancer(() => 0);
    const [a, b, c] = endpoints(3);
    if (a === undefined || b === undefined || c === undefined) throw new Error("three endpoints");
    serveSets(made, { cluster: [a, b, c], local: [c], affinitySeconds: 60 });
    expect(made.choose("local", "10.0.0.1", none)).toEqual(c);
    expect(made.choose("cluster", "10.0.0.1", none)).toEqual(c);
  });

  test("whose endpoint is gone or failed chooses anew, and stays there", () => {
    const { made } = balancer({ cluster: endpoints(2), affinitySeconds: 60 });
    const first = made.choose("cluster", "10.0.0.1", none);
    const second = made.choose("cluster", "10.0.0.1", new Set([endpointKey(first)]));
    expect(second).not.toEqual(first);
    expect(made.choose("cluster", "10.0.0.1", none)).toEqual(second);
    serveSets(made, { cluster: endpoints(1, 9), local: [], affinitySeconds: 60 });
    expect(made.choose("cluster", "10.0.0.1", none)).toEqual(endpoints(1, 9)[0]);
  });

  test("the memory has a bound, and forgets the client that was away longest", () => {
    const { made } = balancer({ cluster: endpoints(3), affinitySeconds: 60 });
    for (let client = 0; client < 70_000; client++) made.choose("cluster", `client ${client}`, none);
    expect(made.clients).toBe(65_536);
  });

  test("without affinity nothing is remembered", () => {
    const { made } = balancer({ cluster: endpoints(3) });
    for (let client = 0; client < 10; client++) made.choose("cluster", `client ${client}`, none);
    expect(made.clients).toBe(0);
  });
});
