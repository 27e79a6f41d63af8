import { inSlices } from "@fairlead/base";
import type { ForwardingPlan, PlanChange } from "@fairlead/core";
import { deleteChains } from "@fairlead/netfilter";
import { BATCH, commit, deleteStale, type Work, type Written } from "./commit.ts";
import type { ResolvedOptions } from "./options.ts";
import type { ChainRules } from "./plan/chain-rules.ts";
import { type RuleChange, ruleChange } from "./plan/change.ts";
import { inDeletionOrder } from "./plan/commands.ts";
import { type RenderContext, renderContext, rendersAlike } from "./plan/settings.ts";
import type { Totals } from "./plan/totals.ts";
import type { RulesPort } from "./port.ts";
import type { Programmed } from "./programmed.ts";
import type { StaleChains } from "./stale-chains.ts";

/** A change of more groups than this, and of most of them, is cheaper to write anew, and streams. */
const MANY_GROUPS = 1000;

/** The context to render the change with; undefined where it takes a full sync. */
export function contextForChange(
  programmed: Programmed,
  plan: ForwardingPlan,
  change: PlanChange,
  options: ResolvedOptions,
): RenderContext | undefined {
  if (change.groups.size > Math.max(MANY_GROUPS, plan.groups.size / 2)) return undefined;
  const context = renderContext(options, plan, programmed.context.counters);
  return rendersAlike(programmed.context, context) ? context : undefined;
}

/** A change and what it is rendered between. */
interface ChangeInput {
  readonly change: PlanChange;
  readonly before: Programmed;
  readonly context: RenderContext;
}

/** Writes what a change touches; starts no process where that is nothing. */
export async function applyChange(
  port: RulesPort,
  { change, before, context }: ChangeInput,
  stale: StaleChains,
  options: ResolvedOptions,
): Promise<{ programmed: Programmed; written: Written }> {
  const rules = await inSlices(ruleChange(change, before.context, context), options);
  stale.add(rules.stale);
  stale.forget(namesOf(rules.endpointChains));
  stale.forget(namesOf(rules.serviceChains));
  const now = options.clock.monotonic();
  const due = stale.due(now, context.large);
  const written = touchesKernel(rules, due) ? await write(port, rules, due, options) : new Map();
  stale.deleted(due, now);
  return { programmed: { context, totals: sum(before.totals, rules.growth) }, written };
}

function sum(a: Totals, b: Totals): Totals {
  return { filter: a.filter + b.filter, nat: a.nat + b.nat };
}

function* namesOf(chains: readonly ChainRules[]): Generator<string> {
  for (const { chain } of chains) yield chain;
}

function touchesKernel(rules: RuleChange, due: readonly string[]): boolean {
  const { endpointChains, serviceChains, filterFirst, nat, filterLast } = rules;
  return [endpointChains, serviceChains, filterFirst, nat, filterLast, due].some(({ length }) => length > 0);
}

async function write(
  port: RulesPort,
  rules: RuleChange,
  due: readonly string[],
  options: ResolvedOptions,
): Promise<Written> {
  const split = port.variant === "nft" && needsBatches(rules, due);
  const deletions = split ? [] : deleteChains(inDeletionOrder(due));
  const nat = [...rules.nat, ...deletions];
  const work: Work = { ...rules, makeFirst: false, chains: [rules], nat, mangle: [] };
  const written = await commit(port, work, split, options);
  if (split) await deleteStale(port, due, split, options);
  return written;
}

function needsBatches({ endpointChains, serviceChains }: RuleChange, due: readonly string[]): boolean {
  return (
    endpointChains.length > BATCH.endpointChains ||
    serviceChains.length > BATCH.serviceChains ||
    serviceChains.reduce((sum, { rules }) => sum + rules.length, 0) > BATCH.rules ||
    due.length > BATCH.staleChains
  );
}
