import fc from "fast-check";
import { expect, test } from "vitest";
import { Heap } from "../src/index.ts";

test("what is taken away one after the other is sorted, whatever it began with and whatever came in between", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer()),
      fc.array(fc.oneof(fc.integer(), fc.constant("pop" as const))),
      (start, steps) => {
        const ascending = (one: number, other: number) => one - other;
        let left = start.toSorted(ascending);
        const heap = new Heap<number>((one, other) => one < other, left);
        for (const step of steps) {
          if (step === "pop") {
            heap.pop();
            left = left.slice(1);
          } else {
            heap.push(step);
            left = [...left, step].sort(ascending);
          }
          expect([heap.first, heap.size]).toEqual([left[0], left.length]);
        }
      },
    ),
  );
});
