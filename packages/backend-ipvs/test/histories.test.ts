import { slotHistory } from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { live } from "./support/live.ts";
import { openWorld, worldOptions } from "./support/world.ts";

/** 192.0.2.1 and 203.0.113.1 are addresses that services have as well. */
const nodeAddresses = fc
  .subarray(["10.201.0.10", "10.202.0.10", "192.0.2.1", "203.0.113.1"])
  .map((addresses) => worldOptions([...addresses, "127.0.0.1"].sort()));

describe("whatever the history, the kernel is as after a fresh start", () => {
  test("changes in any order and split", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, async (batches) => {
        const made = await live(batches);
        expect(await made.differences()).toEqual([]);
      }),
      { numRuns: runs(35) },
    );
  });

  test("the node's addresses come and go meanwhile", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, fc.array(nodeAddresses, { maxLength: 4 }), async (batches, options) => {
        const made = await live([]);
        for (const [step, batch] of batches.entries()) {
          await made.change(batch);
          const next = options[step];
          if (next !== undefined) await made.apply(made.world.setOptions(next));
        }
        expect(await made.differences()).toEqual([]);
      }),
      { numRuns: runs(35) },
    );
  });

  test("there and back again", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, async (batches) => {
        const back = batches.flat().map(([slot]): [number, undefined] => [slot, undefined]);
        const made = await live([...batches, back]);
        expect(made.node.servers.servers()).toEqual([]);
        expect(await made.differences()).toEqual([]);
      }),
      { numRuns: runs(18) },
    );
  });

  test("a full sync over the state of another history, as another process finds it", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, slotHistory, async (first, second) => {
        const { node } = await live(first);
        const world = openWorld();
        for (const batch of second) world.change(batch);
        const made = await live([], { node, world });
        expect(await made.differences()).toEqual([]);
      }),
      { numRuns: runs(20) },
    );
  });

  test("the same changes all at once, and again", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, async (batches) => {
        const made = await live([...batches, ...batches, batches.flat()]);
        expect(await made.differences()).toEqual([]);
      }),
      { numRuns: runs(10) },
    );
  });
});

test("what it wrote is intact, and a sync over it writes nothing but rules", async () => {
  await fc.assert(
    fc.asyncProperty(slotHistory, async (batches) => {
      const made = await live(batches);
      expect(await made.backend.difference(made.world.plan)).toBeUndefined();
      const { objects } = await made.backend.sync(made.world.plan);
      expect(objects).toMatchObject({
        virtualServers: { written: 0 },
        addresses: { written: 0 },
        setMembers: { written: 0 },
      });
    }),
    { numRuns: runs(14) },
  );
});
