import { FakeIptables } from "@fairlead/kernel/fake";
import { compareRuleSets, renderRule } from "@fairlead/netfilter";
import { goldenNode } from "@fairlead/testkit";
import { dividingFilter, slotHistory, webState } from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createIptablesBackend } from "../src/index.ts";
import { openWorld, plannerOptions } from "./support/world.ts";

const LISTS = [["10.244.0.0/16"], ["10.244.0.0/17", "10.245.0.0/16"], []] as const;
const options = (cidrs: readonly string[]) => ({ filter: dividingFilter(cidrs) });

test("whatever the history of services and CIDRs, the kernel is as after a fresh start", async () => {
  const list = fc.constantFrom(...LISTS);
  await fc.assert(
    fc.asyncProperty(slotHistory, fc.array(list, { maxLength: 6 }), async (batches, lists) => {
      const fake = new FakeIptables({ family: "IPv4" });
      const backend = createIptablesBackend(fake, {});
      const world = openWorld(options([]));
      await backend.sync(world.plan);
      for (const [at, batch] of batches.entries()) {
        const cidrs = lists[at];
        for (const change of [
          world.change(batch),
          cidrs && world.setOptions(plannerOptions(goldenNode(false), options(cidrs))),
        ]) {
          if (change !== undefined) expect((await backend.apply(world.plan, change)).kind).toBe("partial");
        }
      }
      const other = new FakeIptables({ family: "IPv4" });
      const last = lists.slice(0, batches.length).at(-1) ?? [];
      const again = openWorld(options(last));
      again.change(world.slots);
      await createIptablesBackend(other, {}).sync(again.plan);
      expect(compareRuleSets(other.ruleSet(), fake.ruleSet())).toEqual([]);
    }),
    { numRuns: runs(20) },
  );
});

test("clients of the other network turn off before the rule that leads on, and are no part of any other", async () => {
  const fake = new FakeIptables({ family: "IPv4" });
  const world = openWorld(options(["10.244.0.0/16"]));
  world.change([[1, webState()]]);
  await createIptablesBackend(fake, {}).sync(world.plan);
  const services = fake.table("nat").chains.get("KUBE-SERVICES")?.rules.map(renderRule) ?? [];
  expect(services.slice(0, 2)).toEqual([
    "-s 10.244.0.0/16 -d 10.96.3.1/32 -p tcp -m comment --comment " +
      '"default/slot-1:main another network serves its clients" -m tcp --dport 80 -m addrtype ! --src-type LOCAL -j RETURN',
    expect.stringMatching(/^-d 10\.96\.3\.1\/32 .* -j KUBE-SVC-/),
  ]);
  const all = ["nat", "filter"].flatMap((table) =>
    [...fake.table(table as "nat").chains.values()].flatMap(({ rules }) => rules.map(renderRule)),
  );
  expect(all.filter((rule) => rule.includes("10.244."))).toHaveLength(1);
});
