import { HCN_CODES } from "@fairlead/kernel/hcn";
import { slotHistory } from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { OTHERS, SlotsNode, slotsHcn } from "./support/world.ts";

const versions = fc.constantFrom({ Major: 15, Minor: 5 }, { Major: 13, Minor: 0 });

describe("whatever the history, HCN is as after a fresh start", () => {
  test("changes in any order and split", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, versions, async (batches, version) => {
        const node = new SlotsNode(slotsHcn(version));
        for (const batch of batches) await node.change(batch);
        expect(node.state).toEqual(await node.fresh());
        expect(node.others).toEqual(OTHERS);
      }),
      { numRuns: runs(60) },
    );
  });

  test("a full sync over what another history left, as another process finds it", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, slotHistory, async (first, second) => {
        const before = new SlotsNode();
        for (const batch of first) await before.change(batch);
        const node = new SlotsNode(before.hcn);
        for (const batch of second) node.world.change(batch);
        await node.backend.sync(node.world.plan);
        expect(node.state).toEqual(await node.fresh());
        expect(node.others).toEqual(OTHERS);
      }),
      { numRuns: runs(60) },
    );
  });

  test("a full sync over what is as it should be writes nothing", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, async (batches) => {
        const before = new SlotsNode();
        for (const batch of batches) await before.change(batch);
        const node = new SlotsNode(before.hcn);
        node.world.change(before.world.slots);
        const written = node.hcn.writes.length;
        await node.backend.sync(node.world.plan);
        expect(node.hcn.writes.slice(written)).toEqual([]);
        expect(await node.backend.difference(node.world.plan)).toBeUndefined();
      }),
      { numRuns: runs(40) },
    );
  });

  test("nothing is left of what is gone, and clean-up leaves what others have", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, async (batches) => {
        const node = new SlotsNode();
        const untouched = node.state;
        for (const batch of batches) await node.change(batch);
        const again = new SlotsNode(node.hcn);
        await again.backend.cleanup();
        // Clean-up knows no service addresses: it takes what leads to the network's own endpoints.
        expect(node.state).toEqual(untouched.filter((line) => !line.startsWith("balancer 192.168.0.1 ")));
      }),
      { numRuns: runs(30) },
    );
  });
});

const CALLS = [
  "HNSCall",
  ...["Network", "Endpoint", "LoadBalancer"].flatMap((kind) => [
    `HcnEnumerate${kind}s`,
    `HcnOpen${kind}`,
    `HcnQuery${kind}Properties`,
    `HcnClose${kind}`,
  ]),
  ...["Endpoint", "LoadBalancer"].flatMap((kind) => [`HcnCreate${kind}`, `HcnDelete${kind}`]),
  "HcnModifyLoadBalancer",
];

const codes = fc.constantFrom(
  0x803b001e,
  HCN_CODES.portExists,
  HCN_CODES.notImplemented,
  HCN_CODES.notRunning,
  0x80004005,
);

test("whatever HCN refuses on the way, the next full syncs repair it, and others' load balancers stay", async () => {
  await fc.assert(
    fc.asyncProperty(
      slotHistory,
      versions,
      fc.array(fc.record({ call: fc.constantFrom(...CALLS), code: codes, at: fc.nat(3) }), {
        minLength: 1,
        maxLength: 5,
      }),
      async (batches, version, faults) => {
        const node = new SlotsNode(slotsHcn(version));
        for (const [step, batch] of batches.entries()) {
          for (const { call, code, at } of faults) if (at === step) node.hcn.fail(call, code);
          // As after a failed sync in the agent: the next one is full.
          await node.change(batch).catch(() => {});
        }
        node.hcn.forgive();
        await node.repair();
        expect(node.state).toEqual(await node.fresh());
        expect(node.others).toEqual(OTHERS);
      },
    ),
    { numRuns: runs(80) },
  );
});
