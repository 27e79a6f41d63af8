import type { PlanEndpoint } from "@fairlead/core";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
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

  test("no other slots change than those of who goes, who comes, and who fills a hole that is left", () => {
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

  test("its size changes seldom, and has 50 slots for each while there are not too many", () => {
    expect([1, 20, 21, 163, 164, 1310, 5000].map(maglevSize)).toEqual([1021, 1021, 8191, 8191, 65_521, 65_521, 65_521]);
  });
});
