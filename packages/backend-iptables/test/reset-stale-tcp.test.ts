import { FakeIptables } from "@fairlead/kernel/fake";
import { compareRuleSets, type RuleSet, renderRule } from "@fairlead/netfilter";
import { type SlotState, slotHistory, webState } from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createIptablesBackend } from "../src/index.ts";
import { openWorld, whereabouts } from "./support/world.ts";

const SLOTS = [1, 2, 3, 4, 5];

async function fresh(slots: Iterable<readonly [number, SlotState]>, resetStaleTCP: boolean): Promise<RuleSet> {
  const fake = new FakeIptables({ family: "IPv4" });
  const world = openWorld({ resetStaleTCP });
  world.change(slots);
  await createIptablesBackend(fake, {}).sync(world.plan);
  return fake.ruleSet();
}

test("whatever the history, the kernel is as after a fresh start, and who begins a connection is treated as ever", async () => {
  await fc.assert(
    fc.asyncProperty(slotHistory, async (batches) => {
      const fake = new FakeIptables({ family: "IPv4" });
      const backend = createIptablesBackend(fake, {});
      const world = openWorld({ resetStaleTCP: true });
      await backend.sync(world.plan);
      for (const batch of batches) {
        const change = world.change(batch);
        if (change !== undefined) expect((await backend.apply(world.plan, change)).kind).toBe("partial");
      }
      expect(compareRuleSets(await fresh(world.slots, true), fake.ruleSet())).toEqual([]);
      const plain = await fresh(world.slots, false);
      expect(whereabouts(fake.ruleSet(), SLOTS)).toEqual(whereabouts(plain, SLOTS));
    }),
    { numRuns: runs(14) },
  );
});

/** The rules about a service that has no endpoint for somebody, as they stand. */
async function refusals(state: Partial<SlotState>, resetStaleTCP = true): Promise<readonly string[]> {
  const ruleSet = await fresh([[1, webState(state)]], resetStaleTCP);
  const chains = [...(ruleSet.get("filter")?.chains.values() ?? [])];
  return chains.flatMap(({ rules }) => rules.map(renderRule)).filter((rule) => rule.includes("endpoints"));
}

const NOBODY = ["none", "none", "none", "none"] as const;
const ELSEWHERE = ["none", "none", "ready", "none"] as const;
const RESET = " ! --tcp-flags FIN,SYN,RST,ACK SYN -j REJECT --reject-with tcp-reset";

test("what is in the middle of a connection is reset before the rule that refuses, or drops", async () => {
  const port = '-p tcp -m comment --comment "default/slot-1:main has no endpoints"';
  const [address, onNode] = [`-d 10.96.3.1/32 ${port} -m tcp --dport 80`, `${port} -m addrtype --dst-type LOCAL`];
  expect(await refusals({ type: "NodePort", endpoints: NOBODY })).toEqual([
    `${onNode} -m tcp --dport 30002${RESET}`,
    `${onNode} -m tcp --dport 30002 -j REJECT --reject-with icmp-port-unreachable`,
    `${address}${RESET}`,
    `${address} -j REJECT --reject-with icmp-port-unreachable`,
  ]);
  const local = address.replace("no endpoints", "no local endpoints");
  expect(await refusals({ internal: "Local", endpoints: ELSEWHERE })).toEqual([`${local}${RESET}`, `${local} -j DROP`]);
});

test("not with UDP, and not unless it is asked for", async () => {
  expect(await refusals({ protocol: "UDP", endpoints: NOBODY })).toHaveLength(1);
  expect(await refusals({ endpoints: NOBODY }, false)).toHaveLength(1);
});
