import type { Fault } from "@fairlead/kernel/fake";
import { NftBatch, type NftTable } from "@fairlead/netfilter/nft";
import { type SlotState, slotChanges, slotHistory, webState } from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { planTable } from "../src/index.ts";
import { meaning } from "./support/tables.ts";
import { openLive, openWorld } from "./support/world.ts";

const steps = slotChanges([1, 2, 3]);

/** The kernel refuses some message, or it carries all out and the answer does not come. */
const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({
    kind: fc.constant("fail" as const),
    errno: fc.constantFrom("ENOMEM", "EBUSY", "ENOENT", "EEXIST", "EPERM", "EMSGSIZE"),
    message: fc.integer({ min: 1, max: 40 }),
  }),
  fc.constant<Fault>({ kind: "lost" }),
);

describe("a fault at any message: the kernel has what was or what is wanted, and the next sync converges", () => {
  test("in a change", async () => {
    await fc.assert(
      fc.asyncProperty(steps, steps, fault, async (before, after, injected) => {
        const made = await serving(before);
        const old = text(made.table());
        const change = made.world.change(after);
        if (change === undefined) return;
        made.fake.faults.failNext(injected);
        await ignoringFault(made.backend.apply(made.world.plan, change));
        made.fake.faults.clear();
        expect([old, fresh(made.world.slots)]).toContain(text(made.table()));
        await made.backend.sync(made.world.plan);
        expect(text(made.table())).toBe(fresh(made.world.slots));
      }),
      { numRuns: runs(20) },
    );
  });

  test("in a full sync, at any of its calls", async () => {
    await fc.assert(
      fc.asyncProperty(steps, steps, fault, fc.integer({ min: 1, max: 4 }), async (before, after, injected, call) => {
        const made = await serving(before);
        const old = text(made.table());
        made.world.change(after);
        made.fake.faults.failCall(made.fake.faults.calls.length + call, injected);
        await ignoringFault(made.backend.sync(made.world.plan));
        made.fake.faults.clear();
        expect([old, fresh(made.world.slots)]).toContain(text(made.table()));
        await made.backend.sync(made.world.plan);
        expect(text(made.table())).toBe(fresh(made.world.slots));
      }),
      { numRuns: runs(20) },
    );
  });

  test("and the caller goes on with changes", async () => {
    await fc.assert(
      fc.asyncProperty(steps, steps, steps, fault, async (before, after, later, injected) => {
        const made = await serving(before);
        made.fake.faults.failNext(injected);
        for (const step of [after, later]) {
          const change = made.world.change(step);
          if (change !== undefined) await ignoringFault(made.backend.apply(made.world.plan, change));
        }
        made.fake.faults.clear();
        await made.backend.sync(made.world.plan);
        expect(text(made.table())).toBe(fresh(made.world.slots));
      }),
      { numRuns: runs(14) },
    );
  });
});

test("whatever another program breaks in the table, the next full sync repairs it", async () => {
  const damage = fc.constantFrom<(batch: NftBatch, table: NftTable) => void>(
    (batch) => batch.deleteTable(),
    (batch) => batch.flushSet("service-ips"),
    (batch) => batch.flushSet("cluster-ips"),
    (batch, { chains }) => {
      for (const name of chains.keys()) batch.flushChain(name);
    },
    (batch, { sets }) => {
      for (const { name, data } of sets.values()) if (data !== "verdict") batch.flushSet(name);
    },
    (batch) => batch.addChain({ name: "endpoint-theirs" }).addChain({ name: "mine" }),
  );
  await fc.assert(
    fc.asyncProperty(steps, fc.array(damage, { minLength: 1, maxLength: 3 }), async (before, deeds) => {
      const made = await serving(before);
      for (const deed of deeds) {
        const table = made.fake.tableNow("ip", "kube-proxy");
        if (table === undefined) break;
        const batch = new NftBatch("ip", "kube-proxy");
        deed(batch, table);
        made.fake.meddle(batch);
      }
      await made.backend.sync(made.world.plan);
      expect(text(made.table())).toBe(fresh(made.world.slots));
    }),
    { numRuns: runs(14) },
  );
});

test("tables of others are untouched, by whatever history, by full syncs and by the clean-up", async () => {
  await fc.assert(
    fc.asyncProperty(slotHistory, async (batches) => {
      const made = await serving([[1, webState()]]);
      const foreign = [
        { ...made.table(), family: "ip6" },
        { ...made.table(), name: "kube-proxy-2" },
        { ...made.table(), name: "theirs" },
      ] as const;
      for (const table of foreign) made.fake.put(table);
      const now = () => foreign.map(({ family, name }) => made.fake.tableNow(family, name));
      const before = now();
      for (const batch of batches) {
        const change = made.world.change(batch);
        if (change !== undefined) await made.backend.apply(made.world.plan, change);
      }
      await made.backend.sync(made.world.plan);
      await made.backend.cleanup();
      expect(made.fake.tableNow("ip", "kube-proxy")).toBeUndefined();
      expect(now()).toEqual(before);
    }),
    { numRuns: runs(7) },
  );
});

async function serving(steps: Iterable<readonly [number, SlotState | undefined]>) {
  const made = await openLive();
  const change = made.world.change(steps);
  if (change !== undefined) await made.backend.apply(made.world.plan, change);
  return made;
}

/** Only what was injected may go wrong. */
async function ignoringFault(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    expect(String(error)).toMatch(/ENOMEM|EBUSY|ENOENT|EEXIST|EPERM|EMSGSIZE|ENOBUFS/);
  });
}

function fresh(slots: Iterable<readonly [number, SlotState]>): string {
  const world = openWorld();
  world.change(slots);
  return text(planTable(world.plan));
}

/**
 * Compared as one: the difference of two such large objects takes longer than the test. A service's own chain that is
 * empty waits to be deleted.
 */
function text(table: NftTable): string {
  const { chains, ...rest } = meaning(table);
  const used = Object.entries(chains).filter(([name, { rules }]) => !name.includes("/") || rules.length > 0);
  return JSON.stringify({ ...rest, chains: used }, null, 1);
}
