import { FakeIptables } from "@fairlead/kernel/fake";
import { compareRuleSets, type RuleSet } from "@fairlead/netfilter";
import { noChange, type SlotState, slotHistory } from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { COUNTERS, createIptablesBackend } from "../src/index.ts";
import { openWorld } from "./support/world.ts";

const counters = async () => new Set(COUNTERS);

describe("whatever the history, the kernel is as after a fresh start", () => {
  test("changes in any order and split", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, fc.constantFrom("nft", "legacy"), async (batches, variant) => {
        const { fake, world } = await live(batches, variant);
        expect(compareRuleSets(await fresh(world.slots), fake.ruleSet())).toEqual([]);
      }),
      { numRuns: runs(35) },
    );
  });

  test("there and back again", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, async (batches) => {
        const back = batches.flat().map(([slot]): [number, undefined] => [slot, undefined]);
        const { fake } = await live([...batches, back], "nft");
        expect(compareRuleSets(await fresh(new Map()), fake.ruleSet())).toEqual([]);
      }),
      { numRuns: runs(18) },
    );
  });

  test("the same changes all at once, and again", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, async (batches) => {
        const once = await live([batches.flat()], "nft");
        const twice = await live([...batches, ...batches], "nft");
        expect(compareRuleSets(once.fake.ruleSet(), twice.fake.ruleSet())).toEqual([]);
      }),
      { numRuns: runs(18) },
    );
  });

  test("a full sync over the state of another history", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, slotHistory, async (first, second) => {
        const { fake } = await live(first, "nft");
        const { world } = await live(second, "nft");
        await createIptablesBackend(fake, { counters }).sync(world.plan);
        expect(compareRuleSets(await fresh(world.slots), fake.ruleSet())).toEqual([]);
      }),
      { numRuns: runs(18) },
    );
  });
});

test("reports count what is there", async () => {
  await fc.assert(
    fc.asyncProperty(slotHistory, async (batches) => {
      const { fake, world, backend } = await live(batches, "nft");
      const partial = await backend.apply(world.plan, noChange);
      const full = await backend.sync(world.plan);
      const jumps = { nat: 3, filter: 11 };
      for (const table of ["nat", "filter"] as const) {
        const rules = [...fake.table(table).chains.values()].flatMap((chain) => chain.rules);
        expect(full.objects[table]?.total, table).toBe(rules.length - jumps[table]);
        expect(partial.objects[table]?.total, table).toBe(full.objects[table]?.total);
      }
    }),
    { numRuns: runs(10) },
  );
});

async function live(
  batches: readonly (readonly (readonly [number, SlotState | undefined])[])[],
  variant: "nft" | "legacy",
) {
  const fake = new FakeIptables({ family: "IPv4", variant, nfacct: new Set(COUNTERS) });
  const backend = createIptablesBackend(fake, { counters });
  const world = openWorld();
  await backend.sync(world.plan);
  for (const batch of batches) {
    const change = world.change(batch);
    if (change === undefined) continue;
    const report = await backend.apply(world.plan, change);
    expect(report.kind).toBe("partial");
  }
  return { fake, world, backend };
}

async function fresh(slots: Iterable<readonly [number, SlotState]>): Promise<RuleSet> {
  const fake = new FakeIptables({ family: "IPv4", nfacct: new Set(COUNTERS) });
  const world = openWorld();
  world.change(slots);
  await createIptablesBackend(fake, { counters }).sync(world.plan);
  return fake.ruleSet();
}
