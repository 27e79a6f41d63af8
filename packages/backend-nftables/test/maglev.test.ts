import type { PlanEndpoint } from "@fairlead/core";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { maglevSize, maglevTable } from "../src/plan/maglev.ts";

const endpoints = (count: number): PlanEndpoint[] =>
  Array.from({ length: count }, (_, at) => ({ address: `10.144.${at >> 8}.${at & 255}`, port: 8080, local: false }));
const tableOf = (list: readonly PlanEndpoint[], size = maglevSize(list.length)) => maglevTable(list, size);

describe("a table of endpoints by their clients' hash", () => {
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
