import { VirtualClock } from "@fairlead/base/testing";
import type { ForwardingPlan } from "@fairlead/core";
import { expect, test } from "vitest";
import type { FamilyOutcome } from "../src/sync/family-sync.ts";
import { tidying } from "../src/sync/tidying.ts";

const SYNCED: FamilyOutcome = { kind: "synced", report: { kind: "partial", objects: {} }, milliseconds: 1 };

test("once for all syncs of half a minute, and not while nothing is synced", async () => {
  const clock = new VirtualClock();
  const tidied: number[] = [];
  const follower = tidying(clock, () => tidied.push(clock.monotonic()));
  const ran = (outcome: FamilyOutcome) =>
    follower.ran?.({ family: "IPv4", plan: {} as ForwardingPlan, change: undefined, outcome });
  ran({ kind: "unchanged" });
  await clock.advance(60_000);
  expect(tidied).toEqual([]);
  ran(SYNCED);
  await clock.advance(10_000);
  ran(SYNCED);
  await clock.advance(600_000);
  expect(tidied).toEqual([90_000]);
  ran(SYNCED);
  await clock.advance(30_000);
  expect(tidied).toEqual([90_000, 700_000]);
});
