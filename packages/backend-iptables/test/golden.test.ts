import type { IPFamily } from "@fairlead/core";
import { FakeIptables } from "@fairlead/kernel/fake";
import { compareRuleSets, parseSave, type RuleSet, type Table } from "@fairlead/netfilter";
import { type GoldenScenario, goldenScenarios } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { COUNTERS, createIptablesBackend, type IptablesPort } from "../src/index.ts";
import { plannerOptions, TestCluster } from "./support/cluster.ts";
import { kernelTest } from "./support/real-kernel.ts";

const TABLES: readonly Table[] = ["mangle", "filter", "nat"];

describe.each(goldenScenarios().map((scenario) => [scenario.name, scenario] as const))("%s", (_, scenario) => {
  test.each(recordings(scenario))("$family as kube-proxy left it, on the fake", async ({ family, text }) => {
    const fake = new FakeIptables({ family, nfacct: new Set(COUNTERS) });
    await sync(fake, scenario, async () => new Set(COUNTERS));
    expect(differences(text, family, fake.ruleSet())).toEqual([]);
  });
});

describe.each(["nft", "legacy"] as const)("on the real kernel, %s", (variant) => {
  kernelTest("every scenario as kube-proxy left it", async (kernel) => {
    // One after the other over what the one before has left: a full sync converges from any of them.
    for (const scenario of goldenScenarios()) {
      for (const { family, text } of recordings(scenario)) {
        const port = await kernel.open(family, variant);
        await sync(port, scenario, kernel.counters);
        const states = await Promise.all(TABLES.map(async (table) => [table, await port.save(table)] as const));
        expect(differences(text, family, new Map(states)), `${scenario.name} ${family}`).toEqual([]);
      }
    }
  });
});

function recordings({ iptables, ip6tables }: GoldenScenario): { family: IPFamily; text: string }[] {
  const ipv4 = { family: "IPv4", text: iptables } as const;
  return ip6tables === undefined ? [ipv4] : [ipv4, { family: "IPv6", text: ip6tables }];
}

async function sync(
  port: IptablesPort,
  scenario: GoldenScenario,
  counters: (names: readonly string[]) => Promise<ReadonlySet<string>>,
): Promise<void> {
  const cluster = new TestCluster(plannerOptions(scenario.node));
  cluster.put(...scenario.objects);
  cluster.replan();
  await createIptablesBackend(port, { counters }).sync(cluster.plan(port.family));
}

function differences(golden: string, family: IPFamily, actual: RuleSet) {
  const ours = new Map([...actual].filter(([table]) => TABLES.includes(table)));
  return compareRuleSets(parseSave(golden, { family }), ours);
}
