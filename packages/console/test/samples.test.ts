import fc from "fast-check";
import { expect, test } from "vitest";
import type { FlowsAnswer } from "../src/index.ts";
import { pointsOf, type Sample, summaryOf, withSample } from "../src/page/samples.ts";

const answer = (at: number, since?: FlowsAnswer["since"]): FlowsAnswer => ({
  node: "node-a",
  at,
  ...(since && { since }),
  traffic: [],
  flows: [],
  more: { services: 0, flows: 0 },
});

test("each look is a point, a second's worth; one that has nothing before it leaves a gap", () => {
  const looks = [
    answer(1_000),
    answer(3_000, { ms: 2_000, opened: 4, bytes: 1_000 }),
    answer(7_000, { ms: 4_000, opened: 0 }),
  ];
  const samples = looks.reduce(withSample, [] as readonly Sample[]);
  expect(pointsOf(samples, "opened")).toEqual([
    [1, 3, 7],
    [null, 2, 0],
  ]);
  expect(pointsOf(samples, "bytes")[1]).toEqual([null, 500, null]);
  expect(summaryOf(samples, "opened")).toEqual({ now: 0, least: 0, most: 2, seconds: 4 });
  expect(summaryOf(samples, "bytes")).toEqual({ now: null, least: 500, most: 500, seconds: 4 });
  expect(summaryOf(samples.slice(0, 1), "opened")).toBeUndefined();
});

test("the ring keeps the latest, in order, and takes each look once", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 1_000 }), { maxLength: 400 }), (times) => {
      const since = { ms: 1_000, opened: 1 };
      const samples = times.reduce((all, at) => withSample(all, answer(at, since)), [] as readonly Sample[]);
      const [shown] = pointsOf(samples, "opened");
      expect(shown.length).toBeLessThanOrEqual(150);
      expect(shown).toEqual([...new Set(shown)].sort((a, b) => a - b));
      if (times.length > 0) expect(shown.at(-1)).toBe(Math.max(...times) / 1_000);
    }),
  );
});
