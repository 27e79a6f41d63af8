import type { IPFamily } from "@fairlead/core";
import { compareRuleSets, type RuleSet } from "@fairlead/netfilter";
import { TestCluster } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { createIpvsBackend } from "../src/index.ts";
import { FakeNode, objectsOf } from "./support/fake-node.ts";
import { ipvsRecordings } from "./support/golden.ts";

const TABLES = ["nat", "filter"];

test.each(ipvsRecordings())("$name: as kube-proxy left it", async (recording) => {
  const node = new FakeNode();
  const cluster = new TestCluster(recording.planner);
  cluster.put(...recording.scenario.objects);
  cluster.replan();
  for (const family of recording.families) await createIpvsBackend(node.port(family)).sync(cluster.plan(family));
  expect(objectsOf(node)).toEqual(recording.objects);
  for (const family of recording.families) {
    expect(compareRuleSets(rules(recording.rules, family), ours(node.rules[family].ruleSet())), family).toEqual([]);
  }
});

function rules(recorded: Readonly<Partial<Record<IPFamily, RuleSet>>>, family: IPFamily): RuleSet {
  return recorded[family] ?? new Map();
}

function ours(ruleSet: RuleSet): RuleSet {
  return new Map([...ruleSet].filter(([table]) => TABLES.includes(table)));
}
