import type { NftTable } from "@fairlead/netfilter/nft";
import { type SlotState, slotHistory } from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { planTable } from "../src/index.ts";
import { meaning } from "./support/meaning.ts";
import { type Batches, openLive, openWorld } from "./support/world.ts";

describe("whatever the history, packets fare as after a fresh start", () => {
  test.each([{}, { fastPath: true }])("changes in any order and split, with %j", async (settings) => {
    await fc.assert(
      fc.asyncProperty(slotHistory, async (batches) => {
        const { table, world } = await live(batches, settings);
        expect(text(table())).toBe(fresh(world.slots, settings));
      }),
      { numRuns: runs(20) },
    );
  });

  test("there and back again", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, async (batches) => {
        const back = batches.flat().map(([slot]): [number, undefined] => [slot, undefined]);
        const { table } = await live([...batches, back]);
        expect(text(table())).toBe(fresh(new Map()));
      }),
      { numRuns: runs(10) },
    );
  });

  test("the same changes all at once, and again", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, async (batches) => {
        const once = await live([batches.flat()]);
        const twice = await live([...batches, ...batches]);
        expect(text(once.table())).toBe(text(twice.table()));
      }),
      { numRuns: runs(10) },
    );
  });

  test("a full sync over the state of another history", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, slotHistory, async (first, second) => {
        const { backend, table } = await live(first);
        const { world } = await live(second);
        await backend.sync(world.plan);
        expect(text(table())).toBe(fresh(world.slots));
      }),
      { numRuns: runs(10) },
    );
  });
});

test("reports count what is there", async () => {
  await fc.assert(
    fc.asyncProperty(slotHistory, async (batches) => {
      const { backend, world, report } = await live(batches);
      const full = await backend.sync(world.plan);
      for (const kind of ["services", "endpoints"]) {
        expect(full.objects[kind]?.written, kind).toBe(full.objects[kind]?.total);
        if (report !== undefined) expect(report.objects[kind]?.total, kind).toBe(full.objects[kind]?.total);
      }
    }),
    { numRuns: runs(10) },
  );
});

async function live(batches: Batches, settings: Parameters<typeof openLive>[0] = {}) {
  const { clock, backend, world, table } = await openLive(settings);
  let report: Awaited<ReturnType<typeof backend.apply>> | undefined;
  for (const batch of batches) {
    const change = world.change(batch);
    if (change === undefined) continue;
    report = await backend.apply(world.plan, change);
    expect(report.kind).toBe("partial");
    // What is deleted later is deleted now and then.
    const wait = await backend.maintain();
    if (wait !== undefined && batch.length % 2 === 0) {
      await clock.advance(wait);
      await backend.maintain();
    }
  }
  for (let times = 0; times < 2; times++) await clock.advance((await backend.maintain()) ?? 0);
  expect(await backend.maintain()).toBeUndefined();
  return { backend, world, table, report };
}

function fresh(slots: Iterable<readonly [number, SlotState]>, settings = {}) {
  const world = openWorld();
  world.change(slots);
  return text(planTable(world.plan, settings));
}

/** Compared as one: the difference of two such large objects takes longer than the test. */
function text(table: NftTable): string {
  return JSON.stringify(meaning(table), null, 1);
}
