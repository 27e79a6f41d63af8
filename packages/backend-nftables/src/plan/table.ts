import { toEnd } from "@fairlead/base";
import type { ForwardingPlan } from "@fairlead/core";
import type { NftTable } from "@fairlead/netfilter/nft";
import { DEFAULTS, type PlanSettings, planContext } from "./context.ts";
import { TableInMemory } from "./table-writer.ts";
import { writeTable } from "./write-table.ts";

/** The table that a plan stands for, as a full sync writes it into a kernel that has none. */
export function planTable(plan: ForwardingPlan, settings: Partial<Omit<PlanSettings, "family">> = {}): NftTable {
  return toEnd(planTableSteps(plan, settings));
}

/** The same in steps, for callers that do other things between. */
export function* planTableSteps(
  plan: ForwardingPlan,
  settings: Partial<Omit<PlanSettings, "family">> = {},
): Generator<void, NftTable, void> {
  const context = planContext({ ...DEFAULTS, ...settings, family: plan.family }, plan);
  const table = new TableInMemory(context);
  yield* writeTable(plan.groups.values(), context, table);
  return table.table();
}
