import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Claimants } from "../src/planner/claimants.ts";

const names = fc.constantFrom(..."abcdefghijklmnop");
const moves = fc.array(fc.record({ comes: fc.boolean(), name: names }), { maxLength: 200 });

test("the first is the smallest of those who are there, whoever came and went", () => {
  fc.assert(
    fc.property(fc.array(names), moves, (start, history) => {
      const claimants = new Claimants(start);
      const there = new Set(start);
      for (const { comes, name } of history) {
        if (comes) claimants.add(name);
        else claimants.delete(name);
        if (comes) there.add(name);
        else there.delete(name);
        expect([claimants.first, claimants.size]).toEqual([[...there].sort()[0], there.size]);
      }
    }),
    { numRuns: runs(500) },
  );
});
