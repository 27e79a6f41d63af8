import type { FakeNftables } from "@fairlead/kernel/fake";
import { NftBatch, type NftTable } from "@fairlead/netfilter/nft";
import { slotChanges, slotHistory } from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createNftablesBackend, type NftablesPort, type TableNews } from "../src/index.ts";
import { planOfEveryKind } from "./support/every-kind.ts";
import { DAMAGES, described, lookedAt } from "./support/tables.ts";
import { openLive } from "./support/world.ts";

describe("on the fake", () => {
  test("after any history nothing differs, and nothing is written", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, async (batches) => {
        const { backend, world, transactions } = await openLive();
        for (const steps of batches) {
          const change = world.change(steps);
          if (change !== undefined) await backend.apply(world.plan, change);
        }
        const before = transactions.length;
        expect(await lookedAt(backend)).toBeUndefined();
        expect(transactions).toHaveLength(before);
      }),
      { numRuns: runs(20) },
    );
  });

  test("whatever is done to a table is found, and after its repair or a full sync all is as it was", async () => {
    const damages = fc.subarray(Object.values(DAMAGES), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(slotChanges([1, 2, 3]), damages, async (steps, chosen) => {
        const { backend, world, fake, table } = await openLive();
        const change = world.change(steps);
        if (change !== undefined) await backend.apply(world.plan, change);
        const before = described(table());
        for (const [damage] of chosen) meddled(fake, damage);
        const differs = JSON.stringify(described({ ...table0, ...fake.tableNow("ip", "kube-proxy") }));
        const difference = await lookedAt(backend);
        expect(difference !== undefined).toBe(differs !== JSON.stringify(before));
        if (difference?.repaired === false) await backend.sync(world.plan);
        expect(described(table())).toEqual(before);
        expect(await lookedAt(backend)).toBeUndefined();
      }),
      { numRuns: runs(35) },
    );
  });

  function meddled(fake: FakeNftables, damage: (table: NftTable) => NftBatch): void {
    const there = fake.tableNow("ip", "kube-proxy");
    const done = there && damage(there);
    if (done === undefined || done.count === 0) return;
    try {
      fake.meddle(done);
    } catch {
      // There is no such element.
    }
  }

  const table0: NftTable = { family: "ip", name: "kube-proxy", chains: new Map(), sets: new Map() };
});

describe("when a table is looked at", () => {
  const plan = planOfEveryKind("IPv4");

  async function watched() {
    const { fake, clock } = await openLive();
    const news: { -readonly [K in keyof TableNews]: TableNews[K] } = { touched: 0, unreported: 0, by: [] };
    let reads = 0;
    const port: NftablesPort = {
      commit: (one) => fake.commit(one),
      roomFor: (wanted) => fake.roomFor(wanted),
      generation: () => fake.generation(),
      sets: (family, table, wanted) => fake.sets(family, table, wanted),
      news: () => ({ ...news }),
      async table(family, name) {
        reads++;
        await clock.advance(100);
        return fake.table(family, name);
      },
    };
    const backend = createNftablesBackend(port, { family: "IPv4", clock });
    await backend.sync(plan);
    return { backend, fake, clock, news, reads: () => reads };
  }

  test("not at all while nothing is known to have happened", async () => {
    const { backend, fake, reads } = await watched();
    fake.meddle(new NftBatch("ip", "kube-proxy").flushSet("service-ips"));
    expect(await lookedAt(backend)).toBeUndefined();
    expect(reads()).toBe(0);
  });

  test("at once where it was touched, each time, and the difference names the process", async () => {
    const { backend, fake, news, reads } = await watched();
    for (let time = 1; time <= 3; time++) {
      fake.meddle(new NftBatch("ip", "kube-proxy").flushSet("service-ips"));
      news.touched++;
      news.by = ["nft (7)"];
      expect(await lookedAt(backend)).toMatchObject({ by: ["nft (7)"], repaired: true });
      expect(await lookedAt(backend)).toBeUndefined();
      expect(reads()).toBe(2 * time);
    }
  });

  test("with a fiftieth of the time where others' transactions were not reported", async () => {
    const { backend, clock, news, reads } = await watched();
    for (const end = clock.monotonic() + 100_000; clock.monotonic() < end; await clock.advance(100)) {
      news.unreported++;
      await lookedAt(backend);
    }
    expect(reads()).toBeGreaterThanOrEqual(18);
    expect(reads()).toBeLessThanOrEqual(21);
  });

  test("and what is found missing once and is there the second time is no difference", async () => {
    const { backend, fake, news } = await watched();
    const whole = fake.table.bind(fake);
    let first = true;
    fake.table = async (family, name) => {
      const read = await whole(family, name);
      if (!first || read === undefined) return read;
      first = false;
      return { ...read, sets: new Map([...read.sets].map(([name, set]) => [name, { ...set, elements: new Map() }])) };
    };
    news.touched++;
    expect(await lookedAt(backend)).toBeUndefined();
  });
});
