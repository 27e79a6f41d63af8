import { VirtualClock } from "@fairlead/base/testing";
import type { Backend, PlanChange, SyncReport } from "@fairlead/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { backoffDelay } from "../src/sync/backoff.ts";
import { FamilySync } from "../src/sync/family-sync.ts";
import { emptyPlan } from "./support/fake-node.ts";

const plan = emptyPlan();
const change: PlanChange = {
  family: "IPv4",
  groups: new Map(),
  healthChecks: new Map(),
  foreignClusterIPs: { added: [], removed: [] },
};

function family() {
  const clock = new VirtualClock();
  const calls: string[] = [];
  const state = { fails: false };
  const answer = async (call: string, kind: SyncReport["kind"]): Promise<SyncReport> => {
    calls.push(call);
    if (state.fails) throw new Error("restore failed");
    return { kind, objects: {} };
  };
  const backend: Backend = {
    semantics: { localSourcesShortCut: true, localWithoutEndpoints: "drop", withoutEndpoints: "reject" },
    prepare: () => void calls.push("prepare"),
    sync: () => answer("sync", "full"),
    apply: () => answer("apply", "partial"),
    difference: async () => undefined,
    cleanup: async () => {},
  };
  const sync = new FamilySync("IPv4", backend, { first: 1_000, most: 30_000 }, clock, () => 1);
  return { clock, calls, state, sync };
}

describe("FamilySync", () => {
  test("the first run writes everything, later ones what changed, none when nothing did", async () => {
    const { calls, sync } = family();
    await sync.run(plan, change);
    await sync.run(plan, change);
    expect(await sync.run(plan, undefined)).toEqual({ kind: "unchanged" });
    expect(calls).toEqual(["sync", "apply"]);
    expect(sync.retryIn).toBeUndefined();
  });

  test("after a failure it owes everything and waits, also when changes come", async () => {
    const { clock, calls, state, sync } = family();
    await sync.run(plan, change);
    state.fails = true;
    expect(await sync.run(plan, change)).toMatchObject({ kind: "failed", sync: "partial", retryIn: 1_000 });
    await clock.advance(999);
    expect(await sync.run(plan, change)).toEqual({ kind: "waiting" });
    expect(sync.retryIn).toBe(1);
    state.fails = false;
    await clock.advance(1);
    expect(await sync.run(plan, undefined)).toMatchObject({ kind: "synced", report: { kind: "full" } });
    expect(calls).toEqual(["sync", "apply", "sync"]);
  });

  test("the backend prepares where it will write everything", async () => {
    const { clock, calls, state, sync } = family();
    sync.prepare();
    await sync.run(plan, change);
    sync.prepare();
    state.fails = true;
    await sync.run(plan, change);
    sync.prepare();
    expect(calls).toEqual(["prepare", "sync", "apply"]);
    await clock.advance(1_000);
    sync.prepare();
    expect(calls).toEqual(["prepare", "sync", "apply", "prepare"]);
  });

  test("failures are further and further apart, a success forgets them", async () => {
    const { clock, state, sync } = family();
    state.fails = true;
    const waits: number[] = [];
    for (let i = 0; i < 7; i++) {
      const outcome = await sync.run(plan, undefined);
      if (outcome.kind === "failed") waits.push(outcome.retryIn);
      await clock.advance(sync.retryIn ?? 0);
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    state.fails = false;
    await sync.run(plan, undefined);
    state.fails = true;
    expect(await sync.run(plan, change)).toMatchObject({ retryIn: 1_000 });
  });
});

test("the back-off stays within its limits whatever the attempt and the dice", () => {
  const dice = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1e9 }), dice, (attempt, random) => {
      const delay = backoffDelay(attempt, { first: 500, most: 30_000 }, random);
      expect(delay).toBeGreaterThanOrEqual(250);
      expect(delay).toBeLessThanOrEqual(30_000);
    }),
  );
});
