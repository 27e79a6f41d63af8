import type { PlanEndpoint } from "@fairlead/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { denseSlots, sameEndpoint } from "../src/plan/slots.ts";

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
