import type { ForwardingPlan } from "@fairlead/core";
import { FakeIptables } from "@fairlead/kernel/fake";
import { createIptablesBackend } from "../../src/index.ts";
import { clusterIPGroup, endpoints, planOf } from "./groups.ts";

/** Endpoints up to which a set has one chain. */
export const FLAT = 5_000;

export function planWith(count: number, affinity = false): ForwardingPlan {
  const more = affinity ? { affinitySeconds: 60 } : {};
  return planOf([clusterIPGroup("large", "10.96.0.80", endpoints(count), more)]);
}

export async function fresh(plan: ForwardingPlan) {
  const fake = new FakeIptables({ family: "IPv4", variant: "nft" });
  await createIptablesBackend(fake).sync(plan);
  return fake.ruleSet();
}
