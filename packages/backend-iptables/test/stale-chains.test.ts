import { expect, test } from "vitest";
import { StaleChains } from "../src/stale-chains.ts";

const names = (count: number) => Array.from({ length: count }, (_, index) => `KUBE-SEP-${index}`);

test("in a large cluster stale chains wait for the period to end, unless there are ten thousand", () => {
  const stale = new StaleChains(30_000);
  stale.add(names(1));
  expect(stale.due(0, true)).toEqual(names(1));
  stale.deleted(names(1), 0);
  stale.add(names(9_999));
  expect(stale.due(1, true)).toEqual([]);
  expect(stale.due(1, false)).toHaveLength(9_999);
  stale.add(names(10_000));
  expect(stale.due(1, true)).toHaveLength(10_000);
  stale.deleted(names(10_000), 1);
  expect(stale.due(30_002, true)).toEqual([]);
});
