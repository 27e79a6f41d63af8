import { type NftTable, ruleText, type Verdict } from "@fairlead/netfilter/nft";
import { type SlotState, slotHistory, traceSlots, webState } from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { planTable } from "../src/index.ts";
import { meaning } from "./support/meaning.ts";
import { openLive, openWorld } from "./support/world.ts";

const SLOTS = [1, 2, 3, 4, 5];

function fresh(slots: Iterable<readonly [number, SlotState]>, resetStaleTCP: boolean): NftTable {
  const world = openWorld({ resetStaleTCP });
  world.change(slots);
  return planTable(world.plan);
}

test("whatever the history, packets fare as after a fresh start, and who begins a connection is treated as ever", async () => {
  await fc.assert(
    fc.asyncProperty(slotHistory, async (batches) => {
      const { backend, clock, table } = await openLive();
      const world = openWorld({ resetStaleTCP: true });
      await backend.sync(world.plan);
      for (const batch of batches) {
        const change = world.change(batch);
        if (change !== undefined) expect((await backend.apply(world.plan, change)).kind).toBe("partial");
      }
      for (let times = 0; times < 2; times++) await clock.advance((await backend.maintain()) ?? 0);
      expect(JSON.stringify(meaning(table()))).toBe(JSON.stringify(meaning(fresh(world.slots, true))));
      expect(ends(table())).toEqual(ends(fresh(world.slots, false)));
    }),
    { numRuns: runs(14) },
  );
});

/** Where packets that begin a connection end. */
function ends(table: NftTable) {
  const traced = [...traceSlots({ nftables: [table] }, SLOTS)];
  return traced.map(([packet, outcomes]) => {
    const found = outcomes.map(({ verdict, destination, masqueraded }) =>
      JSON.stringify([verdict, destination, masqueraded]),
    );
    return [packet, [...new Set(found)].sort()];
  });
}

const NOBODY = ["none", "none", "none", "none"] as const;
const ELSEWHERE = ["none", "none", "ready", "none"] as const;

/** What becomes of packets to a service that has no endpoint for somebody. */
function refusals(state: Partial<SlotState>, resetStaleTCP = true): readonly (readonly string[])[] {
  const table = fresh([[1, webState(state)]], resetStaleTCP);
  const verdicts = ["no-endpoint-services", "no-endpoint-nodeports"].flatMap((map) =>
    [...(table.sets.get(map)?.elements.values() ?? [])].map(({ value }) => value as Verdict),
  );
  return verdicts.map((verdict) => {
    const rules = "chain" in verdict ? table.chains.get(verdict.chain)?.rules : undefined;
    return rules?.map((rule) => ruleText({ expressions: rule.expressions }, table)) ?? [verdict.kind];
  });
}

const RESET = "meta l4proto tcp tcp flags != syn / fin,syn,rst,ack reject with tcp reset";

test("what is in the middle of a connection is reset before all is refused, or dropped", () => {
  expect(refusals({ type: "NodePort", endpoints: NOBODY })).toEqual([
    [RESET, "reject"],
    [RESET, "reject"],
  ]);
  expect(refusals({ internal: "Local", endpoints: ELSEWHERE })).toEqual([[RESET, "drop"]]);
});

test("not with UDP, and not unless it is asked for", () => {
  expect(refusals({ protocol: "UDP", internal: "Local", endpoints: ELSEWHERE })).toEqual([["drop"]]);
  expect(refusals({ endpoints: NOBODY }, false)).toEqual([["reject"]]);
  expect(refusals({ internal: "Local", endpoints: ELSEWHERE }, false)).toEqual([["drop"]]);
});
