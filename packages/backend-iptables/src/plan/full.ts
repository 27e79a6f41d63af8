import type { ForwardingPlan, ServicePortGroup } from "@fairlead/core";
import { type ChainFill, type Command, emptyChain, type Rule, repairJumps, type TableState } from "@fairlead/netfilter";
import type { ChainRules } from "./chain-rules.ts";
import { append, fillChains } from "./commands.ts";
import { type DispatchRule, dispatchesIn, dispatchRules } from "./dispatch.ts";
import { DISPATCH_CHAINS, markChains, nodePortJumps, postroutingChain } from "./frame.ts";
import { type GroupChains, groupChains } from "./group.ts";
import { JUMPS } from "./jumps.ts";
import { CANARY, SERVICES } from "./names.ts";
import type { RenderContext } from "./settings.ts";
import type { Survey } from "./survey.ts";
import type { Totals } from "./totals.ts";

/** A plan that is rendered as a whole, group by group in the order of their ids. */
export interface FullPlan {
  readonly ids: readonly string[];
  /** Those that have rules in the shared chains of filter, mostly few. */
  readonly filtered: readonly string[];
  readonly groups: ReadonlyMap<string, ServicePortGroup>;
  readonly context: RenderContext;
  /** Groups whose chains are there already. */
  readonly done: ReadonlySet<string>;
  /** Counts what the plan needs, as it is rendered. */
  readonly totals: Totals;
}

/** Yields after each group. */
export function* fullPlan(
  plan: ForwardingPlan,
  context: RenderContext,
  { done, rulesDone }: Survey,
): Generator<void, FullPlan> {
  const { groups } = plan;
  const ids = [...groups.keys()].sort();
  const filtered: string[] = [];
  for (const id of ids) {
    const group = groups.get(id);
    if (group !== undefined && dispatchesIn(group, "filter")) filtered.push(id);
    yield;
  }
  return { ids, filtered, groups, context, done, totals: { filter: 0, nat: rulesDone } };
}

/** What all chains jump to, and then group by group those that are not there yet. */
export function* allChains(full: FullPlan): Generator<GroupChains> {
  const marks = markChains(full.context);
  yield { endpointChains: counted(full, marks), serviceChains: [] };
  for (const group of writtenGroups(full)) {
    const chains = groupChains(group, full.context);
    yield {
      endpointChains: counted(full, chains.endpointChains),
      serviceChains: counted(full, chains.serviceChains),
    };
  }
}

function* counted({ totals }: FullPlan, chains: Iterable<ChainRules>): Generator<ChainRules> {
  for (const chain of chains) {
    totals.nat += chain.rules.length;
    yield chain;
  }
}

/** The shared chains of nat, what they lead on to, and what leads to them. */
export function* natFrame(full: FullPlan, jumps: ReadonlyMap<string, readonly Rule[]>): Generator<Command | ChainFill> {
  yield emptyChain(CANARY);
  yield* fillChains(counted(full, [postroutingChain(full.context)]));
  for (const chain of DISPATCH_CHAINS.nat) yield emptyChain(chain);
  for (const entry of allDispatch(full, "nat", "head")) yield append(entry.chain, entry.rule);
  yield* fillRest(full, SERVICES, nodePortJumps(full.context));
  for (const { table, chain, rules } of JUMPS) {
    if (table === "nat") yield* repairJumps(chain, { first: rules }, jumps.get(chain) ?? []);
  }
}

function* fillRest(full: FullPlan, chain: string, rules: readonly Rule[]): Generator<Command> {
  full.totals.nat += rules.length;
  for (const rule of rules) yield append(chain, rule);
}

/** All groups' rules in the shared chains of one table that belong to one end of them. */
export function* allDispatch(
  full: FullPlan,
  table: DispatchRule["table"],
  end: DispatchRule["end"],
): Generator<DispatchRule> {
  for (const group of groupsOf(full, table === "filter" ? full.filtered : full.ids)) {
    for (const entry of dispatchRules(group, full.context)) {
      if (entry.table !== table || entry.end !== end) continue;
      full.totals[table]++;
      yield entry;
    }
  }
}

/** The groups whose chains are not there yet. */
function* writtenGroups(full: FullPlan): Generator<ServicePortGroup> {
  for (const group of groupsOf(full, full.ids)) if (!full.done.has(group.id)) yield group;
}

function* groupsOf({ groups }: FullPlan, ids: readonly string[]): Generator<ServicePortGroup> {
  for (const id of ids) {
    const group = groups.get(id);
    if (group !== undefined) yield group;
  }
}

export function rulesOf(state: TableState, chain: string): readonly Rule[] {
  return state.chains.get(chain)?.rules ?? [];
}
