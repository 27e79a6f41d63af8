import { toEnd } from "@fairlead/base";
import { expect, test } from "vitest";
import { stepsOf } from "../src/steps.ts";
import { changeOf, clusterIPGroup, endpoints, planOf } from "./support/groups.ts";

const group = (n: number, from: number, at = n) =>
  clusterIPGroup(`s${n}`, `10.96.${1 + (at >> 8)}.${at & 255}`, endpoints(1, { from }));

test("a large change comes in steps; frontends that change places go together, in the first", () => {
  const numbers = Array.from({ length: 1502 }, (_, n) => n);
  const before = planOf(numbers.map((n) => group(n, n)));
  const after = planOf(numbers.map((n) => group(n, n + 3000, [1, 0][n])));
  const change = changeOf(before, after);
  const steps = toEnd(stepsOf(change));
  expect(steps.map(({ groups }) => groups.size)).toEqual([2, 1000, 500]);
  expect([...(steps[0]?.groups.keys() ?? [])]).toEqual(["default/s0/tcp", "default/s1/tcp"]);
  expect(new Map(steps.flatMap(({ groups }) => [...groups]))).toEqual(change.groups);
});

test("a small change is one step", () => {
  const change = changeOf(planOf([group(1, 1)]), planOf([group(1, 2)]));
  expect(toEnd(stepsOf(change))).toEqual([change]);
});
