import type { ForwardingPlan } from "@fairlead/core";
import { expect, test } from "vitest";
import { afterStart } from "../src/sync/after-start.ts";
import type { FamilyOutcome } from "../src/sync/family-sync.ts";

test("once, after the first sync that is complete", () => {
  let called = 0;
  const follower = afterStart(() => called++);
  const ran = (outcome: FamilyOutcome) =>
    follower.ran?.({ family: "IPv4", plan: {} as ForwardingPlan, change: undefined, outcome });
  ran({ kind: "failed", sync: "full", error: new Error("refused"), milliseconds: 1, retryIn: 1 });
  ran({ kind: "unchanged" });
  expect(called).toBe(0);
  ran({ kind: "synced", report: { kind: "full", objects: {} }, milliseconds: 1 });
  ran({ kind: "synced", report: { kind: "partial", objects: {} }, milliseconds: 1 });
  expect(called).toBe(1);
});
