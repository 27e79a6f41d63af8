/** Applies changes of a plan, step by step, and remembers what has been programmed. */

import { inSlices } from "@fairlead/base";
import type { ForwardingPlan, GroupChange, PlanChange, SyncReport } from "@fairlead/core";
import { deleteChains } from "@fairlead/netfilter";
import type { StaleChains } from "./commit.ts";
import { BATCH, batches, commit, deleteStale, type Work, type Written } from "./commit.ts";
import type { ResolvedOptions } from "./options.ts";
import { type RuleChange, ruleChange } from "./plan/change.ts";
import { type ChainRules, inDeletionOrder } from "./plan/rule-parts.ts";
import { type RenderContext, renderContext, rendersAlike, type Totals } from "./plan/settings.ts";
import type { RulesPort } from "./port.ts";

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
  const context = renderContext(options, plan, programmed.context);
  return rendersAlike(programmed.context, context) ? context : undefined;
}

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

/** The rules of a step are held until they are written, some 30 kB for a group of ten endpoints. */
const GROUPS = 1000;

/**
 * Cuts a large change into steps of bounded size that are applied one after the other. What has to happen at once stays
 * together, in the first one: frontends, which may go from one group to another, and what is not a group's. Yields
 * after each group.
 */
export function* stepsOf(change: PlanChange): Generator<void, readonly PlanChange[]> {
  if (change.groups.size <= GROUPS) return [change];
  const endpoints: [string, GroupChange][] = [];
  const frontends = new Map<string, GroupChange>();
  for (const [id, group] of change.groups) {
    if (keepsFrontends(group)) endpoints.push([id, group]);
    else frontends.set(id, group);
    yield;
  }
  const steps = [...batches(endpoints, GROUPS)].map((some) => onlyEndpoints(change, some));
  return [{ ...change, groups: frontends }, ...steps];
}

/** What the kernel holds of ours after the last sync that was accepted, as far as changes need to know. */
export interface Programmed {
  readonly context: RenderContext;
  readonly totals: Totals;
}

export function report(kind: SyncReport["kind"], totals: Totals, written: Written): SyncReport {
  return {
    kind,
    objects: {
      filter: { total: totals.filter, written: written.get("filter") ?? 0 },
      nat: { total: totals.nat, written: written.get("nat") ?? 0 },
    },
  };
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

function keepsFrontends({ before, after }: GroupChange): boolean {
  if (before === undefined || after === undefined || before.healthCheckPort !== after.healthCheckPort) return false;
  return JSON.stringify(before.frontends) === JSON.stringify(after.frontends);
}

function onlyEndpoints({ family }: PlanChange, groups: Iterable<readonly [string, GroupChange]>): PlanChange {
  return { family, groups: new Map(groups), healthChecks: new Map(), foreignClusterIPs: { added: [], removed: [] } };
}
