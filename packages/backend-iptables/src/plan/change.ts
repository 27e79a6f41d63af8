import type { PlanChange } from "@fairlead/core";
import { addChainChange, type ChainChange } from "./chain-change.ts";
import { append, remove } from "./commands.ts";
import { addDispatchChange, type DispatchChange } from "./dispatch-change.ts";
import { nodePortJumps } from "./frame.ts";
import { type GroupRules, groupRules } from "./group.ts";
import { SERVICES } from "./names.ts";
import type { RenderContext } from "./settings.ts";
import type { Totals } from "./totals.ts";

/** A plan's change as kernel objects. */
export interface RuleChange extends ChainChange, DispatchChange {
  /** How many rules the plan needs more or (negative) less. */
  readonly growth: Totals;
}

/**
 * Works out which chains and rules a change touches; yields after each chain.
 *
 * @param before what the kernel's rules were rendered with; it renders groups as `context` does
 */
export function* ruleChange(
  change: PlanChange,
  before: RenderContext,
  context: RenderContext,
): Generator<void, RuleChange> {
  const rules: RuleChange = {
    ...{ endpointChains: [], serviceChains: [], stale: [] },
    ...{ filterFirst: [], nat: [], filterLast: [] },
    growth: { filter: 0, nat: 0 },
  };
  for (const groups of change.groups.values()) {
    const old = yield* groupRules(groups.before, context);
    const wanted = yield* groupRules(groups.after, context);
    yield* addChainChange(old, wanted, rules);
    addDispatchChange(old.dispatch, wanted.dispatch, rules);
    yield* grow(rules.growth, old, -1);
    yield* grow(rules.growth, wanted, 1);
    yield;
  }
  moveNodePortJumps(before, context, rules);
  return rules;
}

function* grow(growth: Totals, rules: GroupRules, sign: 1 | -1): Generator<void, void> {
  for (const chain of rules.endpointChains) {
    growth.nat += sign * chain.rules.length;
    yield;
  }
  for (const chain of rules.serviceChains) growth.nat += sign * chain.rules.length;
  for (const { table } of rules.dispatch) growth[table] += sign;
}

/** The node's addresses come and go; the jumps to KUBE-NODEPORTS stay the last rules of their chain. */
function moveNodePortJumps(before: RenderContext, after: RenderContext, rules: RuleChange): void {
  const old = nodePortJumps(before);
  const wanted = nodePortJumps(after);
  if (JSON.stringify(old) === JSON.stringify(wanted)) return;
  rules.growth.nat += wanted.length - old.length;
  rules.nat.push(...old.map((rule) => remove(SERVICES, rule)), ...wanted.map((rule) => append(SERVICES, rule)));
}
