import type { PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import { FakeNftables } from "@fairlead/kernel/fake";
import { NftBatch } from "@fairlead/netfilter/nft";
import { type SlotState, webState } from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createNftablesBackend, planTable } from "../src/index.ts";
import { changeTable } from "../src/plan/change-table.ts";
import { DEFAULTS, planContext } from "../src/plan/context.ts";
import {
  denseSlots,
  drawsOf,
  fewestOf,
  maglevSize,
  maglevTable,
  moduliOf,
  sameEndpoint,
  sizeAbove,
  sizeFor,
} from "../src/plan/placement.ts";
import { TableInMemory, writeTable } from "../src/plan/write-table.ts";
import { groupOfEveryKind, planOfEveryKind } from "./support/every-kind.ts";
import { described } from "./support/tables.ts";
import { openWorld, recorded } from "./support/world.ts";

const MOST = 4096;
const counts = Array.from({ length: MOST }, (_, at) => at + 1);
const sizes = [...new Set(counts.map(sizeAbove))];
const moduli = new Map(sizes.map((size) => [size, moduliOf(size)]));
const moduliIn = (size: number) => moduli.get(size) ?? [];

test("sizes are powers of two, and half as much more", () => {
  expect(sizes.slice(0, 8)).toEqual([2, 3, 4, 6, 8, 12, 16, 24]);
  expect(sizes.at(-1)).toBe(6144);
});

describe("a service", () => {
  test.each([
    [1, undefined, 2],
    [2, 2, 2],
    [3, 2, 4],
    [3, undefined, 4],
    [5, 6, 6],
    [7, 6, 8],
    [3, 6, 6],
    [2, 6, 3],
    [1, 8, 2],
  ])("of %i endpoints that is in class %s goes to %i", (count, now, size) => {
    expect(sizeFor(count, now)).toBe(size);
  });

  test("has room to grow where it enters, and enough to stay where it is", () => {
    for (const count of counts) {
      const size = sizeAbove(count);
      expect(size).toBeGreaterThan(count);
      expect(fewestOf(size)).toBeLessThanOrEqual(count);
      expect(sizeFor(count + 1, size)).toBe(size);
    }
  });
});

test("no endpoint's chance differs from another's by more than 0.5 %, whatever the number, in whatever class", () => {
  const worst = counts.map((count) => {
    const classes = sizes.filter((size) => fewestOf(size) <= count && count <= size);
    expect(classes.length, `${count}`).toBeGreaterThan(0);
    return Math.max(...classes.map((size) => unevenness(chances(moduliIn(size), count), count)));
  });
  expect(Math.max(...worst)).toBeLessThanOrEqual(0.005);
  // It is no more draws than that needs.
  for (const size of sizes.filter((size) => drawsOf(size) > 1)) {
    const fewer = moduliIn(size).slice(1);
    const all = counts.filter((count) => fewestOf(size) <= count && count <= size);
    expect(Math.max(...all.map((count) => unevenness(chances(fewer, count), count))), `${size}`).toBeGreaterThan(0.005);
  }
});

test("every packet gets an endpoint", () => {
  for (const size of sizes) {
    const [count, moduli] = [fewestOf(size), moduliIn(size)];
    const others = count === 1 ? 0 : (count - 1) * chanceOf(1, moduli, count);
    expect(chanceOf(0, moduli, count) + others).toBeCloseTo(1, 9);
  }
});

/**
 * Walks the draws as a packet does: the chance of a slot to be the one, where the first `count` are filled. Of slots
 * that every draw treats alike there are only the first, those below the class's fewest, and the others.
 */
function chances(moduli: readonly number[], count: number): Map<number, number> {
  const fewest = fewestOf(moduli[0] ?? 1);
  return new Map(
    [0, 1, fewest - 1, fewest, count - 1]
      .filter((slot) => slot < count)
      .map((slot) => [slot, chanceOf(slot, moduli, count)]),
  );
}

function chanceOf(slot: number, moduli: readonly number[], count: number): number {
  let [chance, undecided] = [0, 1];
  for (const modulus of moduli) {
    if (slot < modulus) chance += undecided / modulus;
    undecided *= 1 - Math.min(count, modulus) / modulus;
  }
  return chance;
}

function unevenness(each: ReadonlyMap<number, number>, count: number): number {
  return Math.max(...Array.from(each.values(), (chance) => Math.abs(chance * count - 1)));
}

describe("slots", () => {
  const endpoint = (number: number): PlanEndpoint => ({ address: `10.144.0.${number}`, port: 80, local: false });
  const endpoints = fc.uniqueArray(fc.nat({ max: 30 }), { maxLength: 20 }).map((numbers) => numbers.map(endpoint));
  const histories = fc.array(endpoints, { minLength: 2, maxLength: 6 });

  test("dense slots have every endpoint once, and no hole", () => {
    fc.assert(
      fc.property(histories, (history) => {
        let slots: readonly PlanEndpoint[] = [];
        for (const wanted of history) {
          slots = denseSlots(slots, wanted);
          expect(names(slots).sort()).toEqual(names(wanted).sort());
        }
      }),
    );
  });

  test("no other slots change than those of endpoints that go, that come, and that fill a hole", () => {
    fc.assert(
      fc.property(endpoints, endpoints, (before, wanted) => {
        const after = denseSlots(before, wanted);
        const gone = before.filter((one) => !wanted.some((other) => sameEndpoint(one, other))).length;
        const come = wanted.length - (before.length - gone);
        const changed = Array.from({ length: Math.max(before.length, after.length) }).filter(
          (_, slot) => !sameEndpoint(before[slot], after[slot]),
        );
        expect(changed.length).toBeLessThanOrEqual(Math.max(gone, come) + Math.max(0, gone - come));
      }),
    );
  });

  test("as long as nothing changed, the plan's own list is kept", () => {
    const list = [endpoint(1), endpoint(2)];
    expect(denseSlots([], list)).toBe(list);
  });

  function names(slots: readonly PlanEndpoint[]): string[] {
    return slots.map(({ address, port }) => `${address} ${port}`);
  }
});

describe("a table of endpoints by their clients' hash", () => {
  const endpoints = (count: number): PlanEndpoint[] =>
    Array.from({ length: count }, (_, at) => ({ address: `10.144.${at >> 8}.${at & 255}`, port: 8080, local: false }));
  const tableOf = (list: readonly PlanEndpoint[], size = maglevSize(list.length)) => maglevTable(list, size);

  test("is full, and no endpoint has two slots more than another", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 160 }), (count) => {
        const table = tableOf(endpoints(count));
        expect(table).toHaveLength(maglevSize(count));
        const slots = Map.groupBy(table, ({ address }) => address);
        expect(slots.size).toBe(count);
        const numbers = Array.from(slots.values(), ({ length }) => length);
        expect(Math.max(...numbers) - Math.min(...numbers)).toBeLessThanOrEqual(1);
      }),
      { numRuns: runs(30) },
    );
  });

  test.each([
    [5, 0.03],
    [10, 0.05],
    [100, 0.03],
  ])("of %i endpoints: one that goes takes its own slots with it, and few of the others'", (count, most) => {
    const all = endpoints(count);
    const before = tableOf(all);
    for (const gone of [0, Math.floor(count / 2), count - 1]) {
      const after = tableOf(all.toSpliced(gone, 1), before.length);
      const others = before.flatMap((one, slot) => (one === all[gone] ? [] : [one === after[slot]]));
      expect(others.filter((stays) => !stays).length / others.length).toBeLessThan(most);
    }
  });

  test("has as many slots of each as it weighs, one at least, and few others move when weights change", () => {
    const all = endpoints(4);
    const [before, after] = [
      [1, 9, 9, 1],
      [9, 9, 9, 1],
    ].map((weights) => maglevTable(all, 1021, weights));
    const slotsOf = (table: readonly PlanEndpoint[] = []) =>
      all.map((one) => table.filter((slot) => slot === one).length);
    expect(slotsOf(before)).toEqual([52, 459, 459, 51]);
    expect(slotsOf(maglevTable(all.slice(0, 2), 1021, [1, 65_536]))).toEqual([1, 1020, 0, 0]);
    const moved = before?.filter((one, slot) => one !== after?.[slot] && after?.[slot] !== all[0]).length ?? 0;
    expect(moved / 1021).toBeLessThan(0.1);
  });

  test("its size changes seldom, and has 50 slots for each while there are not too many", () => {
    expect([1, 20, 21, 163, 164, 1310, 5000].map(maglevSize)).toEqual([1021, 1021, 8191, 8191, 65_521, 65_521, 65_521]);
  });
});

const ENDPOINTS = 20_000;

test("a service of very many endpoints is written and changed in short steps", () => {
  const plan = planOfEveryKind("IPv4");
  const context = planContext({ ...DEFAULTS, family: "IPv4" }, plan);
  const written = stepsOf(writeTable([group(0)], context, new TableInMemory(context)));
  expect(written.steps).toBeGreaterThan((5 * ENDPOINTS) / 2048);
  const batch = new NftBatch("ip", "kube-proxy");
  const changed = stepsOf(changeTable(written.result, [["default/many/tcp", group(ENDPOINTS)]], context, batch));
  expect(changed.steps).toBeGreaterThan((5 * ENDPOINTS) / 2048);
  expect(changed.result.written.endpoints).toBeGreaterThan(ENDPOINTS);
});

function group(from: number): ServicePortGroup {
  const endpoints = Array.from({ length: ENDPOINTS }, (_, at): PlanEndpoint => {
    const number = from + at;
    return { address: `10.${144 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`, port: 8080, local: false };
  });
  return { ...groupOfEveryKind("IPv4", "many", 1, "TCP"), cluster: endpoints };
}

function stepsOf<T>(generator: Generator<void, T>): { readonly steps: number; readonly result: T } {
  for (let steps = 0; ; steps++) {
    const next = generator.next();
    if (next.done === true) return { steps, result: next.value };
  }
}

/** Far from enough for the services of these tests, and enough for each single message. */
const ROOM = 64 * 1024;

test("a table for which there is no room at once goes in several transactions", async () => {
  const { fake, transactions, world } = await openNode();
  expect(transactions.length).toBeGreaterThan(3);
  const table = fake.tableNow("ip", "kube-proxy");
  expect(table && described(table)).toEqual(described(planTable(world.plan)));
});

test("packets that are refused in the end are not refused before the others are served", async () => {
  const { transactions } = await openNode();
  const order = transactions
    .flat()
    .filter(({ what }) => what === "element")
    .map(({ name }) => name);
  const last = (...names: readonly string[]) => Math.max(...names.map((name) => order.lastIndexOf(name)));
  const first = (...names: readonly string[]) =>
    Math.min(...names.map((name) => order.indexOf(name)).filter((at) => at >= 0));
  expect(last("firewall-ips")).toBeLessThan(first("service-ips"));
  expect(last("service-ips", "service-nodeports")).toBeLessThan(first("no-endpoint-services", "no-endpoint-nodeports"));
  expect(last("no-endpoint-services", "no-endpoint-nodeports")).toBeLessThan(first("cluster-ips"));
});

test("a change for which there is no room becomes a full sync", async () => {
  const { backend, fake, world } = await openNode();
  const change = world.change(services({ endpoints: ["none", "none", "ready", "ready"] }));
  if (change === undefined) throw new Error("nothing changed");
  expect((await backend.apply(world.plan, change)).kind).toBe("full");
  const table = fake.tableNow("ip", "kube-proxy");
  expect(table && described(table)).toEqual(described(planTable(world.plan)));
});

function services(state: Partial<SlotState>): readonly (readonly [number, SlotState])[] {
  const whole = { type: "LoadBalancer", ranges: true, externalIP: true, ...state } as const;
  const none = { ...whole, endpoints: ["none", "none", "none", "none"] } as const;
  return Array.from({ length: 250 }, (_, slot) => [slot, webState(slot % 10 === 0 ? none : whole)]);
}

async function openNode() {
  const fake = new FakeNftables({ room: ROOM });
  const { port, transactions } = recorded(fake);
  const world = openWorld();
  world.change(services({ endpoints: ["ready", "ready", "none", "none"] }));
  const backend = createNftablesBackend(port, { family: "IPv4" });
  await backend.sync(world.plan);
  return { fake, transactions, world, backend };
}
