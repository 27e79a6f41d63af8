import type { Fault } from "@fairlead/kernel/fake";
import { FakeIptables } from "@fairlead/kernel/fake";
import { compareRuleSets, type RuleSet } from "@fairlead/netfilter";
import {
  noChange,
  type SlotChanges,
  type SlotState,
  slotChanges,
  type World,
  webState,
} from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { COUNTERS, createIptablesBackend } from "../src/index.ts";
import { RecordingPort } from "./support/recording-port.ts";
import { isEndBetween, openWorld, whereabouts } from "./support/world.ts";

const SLOTS = [1, 2, 3, 4];
const slots = slotChanges(SLOTS);
const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.constant<Fault>({ kind: "fail" }),
  fc.constant<Fault>({ kind: "lost" }),
  fc.integer({ min: 0, max: 4 }).map((transactions): Fault => ({ kind: "kill", transactions })),
);
const counters = async () => new Set(COUNTERS);

/** A load balancer that admits only some clients, and one that refuses all clients because it has no endpoint. */
const BALANCER = { type: "LoadBalancer", ranges: true } as const;
const ranged = webState({ ...BALANCER, endpoints: ["ready", "ready", "ready", "ready"] });
const refused = webState({ ...BALANCER, ranges: false, endpoints: ["none", "none", "none", "none"] });

describe("a fault at any process: every packet goes as before or as wanted, and the next sync converges", () => {
  test("in a change", async () => {
    await fc.assert(
      fc.asyncProperty(slots, slots, fault, async (before, after, injected) => {
        const { fake, world, backend, old } = await serving(before);
        const change = world.change(after);
        if (change === undefined) return;
        fake.faults.failNext(injected);
        await ignoringFault(backend.apply(world.plan, change));
        fake.faults.clear();
        await expectOldOrNew(fake.ruleSet(), old, world);
        await backend.sync(world.plan);
        expect(compareRuleSets(await fresh(world), fake.ruleSet())).toEqual([]);
      }),
      { numRuns: runs(35), examples: [[[[2, ranged]], [[2, refused]], { kind: "kill", transactions: 2 }]] },
    );
  });

  test("in a change, and the caller goes on with changes", async () => {
    await fc.assert(
      fc.asyncProperty(slots, slots, slots, fault, async (before, after, later, injected) => {
        const { fake, world, backend } = await serving(before);
        fake.faults.failNext(injected);
        for (const step of [after, later]) {
          const change = world.change(step);
          if (change !== undefined) await ignoringFault(backend.apply(world.plan, change));
        }
        fake.faults.clear();
        await backend.apply(world.plan, world.change([[1, undefined]]) ?? noChange);
        expect(compareRuleSets(await fresh(world), fake.ruleSet())).toEqual([]);
      }),
      { numRuns: runs(20) },
    );
  });

  test("in a full sync over what serves", async () => {
    await fc.assert(
      fc.asyncProperty(slots, slots, fault, fc.integer({ min: 1, max: 8 }), async (before, after, injected, call) => {
        const { fake, world, old } = await serving(before);
        world.change(after);
        const restarted = createIptablesBackend(fake, { counters });
        fake.faults.failCall(fake.faults.calls.length + call, injected);
        await ignoringFault(restarted.sync(world.plan));
        fake.faults.clear();
        await expectOldOrNew(fake.ruleSet(), old, world);
        await restarted.sync(world.plan);
        expect(compareRuleSets(await fresh(world), fake.ruleSet())).toEqual([]);
      }),
      { numRuns: runs(30) },
    );
  });

  test("in a full sync in batches", async () => {
    const many = Array.from({ length: 260 }, (_, slot): [number, SlotState] => [slot % 250, manyState(slot)]);
    const { fake, world, old } = await serving(many.slice(0, 100), "nft");
    world.change(many);
    const calls = fake.faults.calls.length;
    const port = new RecordingPort(fake);
    await createIptablesBackend(port, { counters }).sync(world.plan);
    const wanted = whereabouts(fake.ruleSet(), [3, 99, 150]);
    const [transactions = []] = port.take();
    expect(transactions.length).toBeGreaterThan(4);
    const kills = transactions.map((_, done): Fault => ({ kind: "kill", transactions: done }));
    const restore = fake.faults.calls.findIndex(({ argv }, at) => at >= calls && argv[0].endsWith("-restore"));
    for (const [call, injected] of [
      ...fake.faults.calls.slice(calls).map((_, at): [number, Fault] => [at + 1, { kind: "fail" }]),
      ...kills.map((kill): [number, Fault] => [restore - calls + 1, kill]),
    ]) {
      const again = await serving(many.slice(0, 100), "nft");
      again.world.change(many);
      again.fake.faults.failCall(again.fake.faults.calls.length + call, injected);
      await ignoringFault(createIptablesBackend(again.fake, { counters }).sync(again.world.plan));
      again.fake.faults.clear();
      expect(wrongEnds(whereabouts(again.fake.ruleSet(), [3, 99, 150]), old, wanted)).toEqual([]);
    }
  });
});

test("a change that renders to nothing starts no process", async () => {
  const { fake, world, backend } = await serving([[1, manyState(1)]]);
  const calls = fake.faults.calls.length;
  const report = await backend.apply(world.plan, noChange);
  expect(report.objects).toMatchObject({ nat: { written: 0 }, filter: { written: 0 } });
  expect(fake.faults.calls.length).toBe(calls);
});

function manyState(slot: number): SlotState {
  return webState({
    type: slot % 2 === 0 ? "ClusterIP" : "NodePort",
    affinity: slot % 3 === 0,
    ...(slot > 250 && { endpoints: ["none", "none", "ready", "none"] }),
  });
}

async function serving(before: SlotChanges, variant: "nft" | "legacy" = "legacy") {
  const fake = new FakeIptables({ family: "IPv4", variant, nfacct: new Set(COUNTERS) });
  const backend = createIptablesBackend(fake, { counters });
  const world = openWorld();
  world.change(before);
  await backend.sync(world.plan);
  return { fake, world, backend, old: whereabouts(fake.ruleSet(), variant === "nft" ? [3, 99, 150] : SLOTS) };
}

async function expectOldOrNew(now: RuleSet, old: ReadonlyMap<string, string>, world: World): Promise<void> {
  const wanted = whereabouts(await fresh(world), SLOTS);
  expect(wrongEnds(whereabouts(now, SLOTS), old, wanted)).toEqual([]);
}

type Ends = ReadonlyMap<string, string>;

function wrongEnds(now: Ends, before: Ends, after: Ends): string[] {
  return [...now]
    .filter(([packet, end]) => !isEndBetween(end, before.get(packet), after.get(packet)))
    .map(([packet, end]) => `${packet}: ${end}; before: ${before.get(packet)}, wanted: ${after.get(packet)}`);
}

async function fresh({ plan }: World): Promise<RuleSet> {
  const fake = new FakeIptables({ family: "IPv4", nfacct: new Set(COUNTERS) });
  await createIptablesBackend(fake, { counters }).sync(plan);
  return fake.ruleSet();
}

async function ignoringFault(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof Error) || error.name !== "IptablesError") throw error;
  });
}
