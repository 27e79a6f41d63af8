/** The whole of the rules, and what of them a full sync leaves out. */

import type { ForwardingPlan, ServicePortGroup } from "@fairlead/core";
import {
  type ChainFill,
  type Command,
  emptyChain,
  isWritableKey,
  type Rule,
  type RuleList,
  renderRule,
  repairJumps,
  ruleEquals,
  ruleKey,
  sha256,
  startDigest,
  type TableState,
} from "@fairlead/netfilter";
import { type DispatchRule, dispatchesIn, dispatchRules } from "./dispatch.ts";
import {
  DISPATCH_CHAINS,
  forwardChain,
  JUMPS,
  KUBELET_JUMP,
  KUBELET_JUMP_CHAINS,
  LOCALNET_RULE,
  markChains,
  nodePortJumps,
  postroutingChain,
} from "./frame.ts";
import { chainsOf, type GroupChains, groupChains } from "./group.ts";
import { CANARY, KUBELET_FIREWALL, SERVICES } from "./group-names.ts";
import { append, type ChainRules, ensureRule, fillChains, remove } from "./rule-parts.ts";
import type { RenderContext, Totals } from "./settings.ts";

/** What of a plan's chains the kernel has already. */
interface Survey {
  /** Groups of which the kernel has every chain as it should be. */
  readonly done: ReadonlySet<string>;
  readonly rulesDone: number;
  /** Existing group chains that the plan has no use for. */
  readonly stale: ReadonlySet<string>;
}

/** A plan that is rendered as a whole, group by group in the order of their ids. */
interface FullPlan {
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

/**
 * Filter's part of a full sync. Rules that refuse packets and are wanted no more stay behind the new ones until nat has
 * taken over (`last`): a service that has endpoints again is refused until it is served, never let go unanswered.
 */
export class FilterFrame {
  readonly #full: FullPlan;
  readonly #state: TableState;
  /** Less those that are written anew. */
  readonly #old: Map<string, Command>;

  /** @param old what `oldRules` gives of the state */
  constructor(full: FullPlan, state: TableState, old: Map<string, Command>) {
    this.#full = full;
    this.#state = state;
    this.#old = old;
  }

  *first(): Generator<Command | ChainFill> {
    const { context, totals } = this.#full;
    for (const chain of [CANARY, ...DISPATCH_CHAINS.filter]) yield emptyChain(chain);
    yield* this.#dispatch("head");
    yield* this.#dispatch("tail");
    yield* this.#old.values();
    const forward = forwardChain(context);
    totals.filter += forward.rules.length;
    yield* fillChains([forward]);
    yield* this.#kubeletFirewall();
    for (const { table, chain, rules } of JUMPS) {
      if (table === "filter") yield* repairJumps(chain, { first: rules }, rulesOf(this.#state, chain));
    }
    for (const chain of KUBELET_JUMP_CHAINS) yield* ensureRule(chain, KUBELET_JUMP, rulesOf(this.#state, chain));
  }

  *last(): Generator<Command> {
    for (const old of this.#old.values()) if (old.kind === "append") yield remove(old.chain, old.rule);
  }

  *#dispatch(end: "head" | "tail"): Generator<Command> {
    for (const { chain, rule } of allDispatch(this.#full, "filter", end)) {
      if (this.#old.size > 0) this.#old.delete(`${chain} ${ruleKey(rule)}`);
      yield append(chain, rule);
    }
  }

  /** Kubelet's chain is shared: made where it is missing, given the rule where it lacks it, and never emptied. */
  *#kubeletFirewall(): Generator<Command> {
    if (!this.#state.chains.has(KUBELET_FIREWALL)) yield emptyChain(KUBELET_FIREWALL);
    if (!this.#full.context.localhost) return;
    this.#full.totals.filter++;
    const there = rulesOf(this.#state, KUBELET_FIREWALL).some((rule) => ruleEquals(rule, LOCALNET_RULE));
    if (!there) yield append(KUBELET_FIREWALL, LOCALNET_RULE);
  }
}

/**
 * Rules of the shared chains that may be ours, by chain and text, as commands that write them again. Yields after each.
 */
export function* oldRules(state: TableState): Generator<void, Map<string, Command>> {
  const old = new Map<string, Command>();
  for (const chain of DISPATCH_CHAINS.filter) {
    for (const rule of rulesOf(state, chain)) {
      const key = isTyped(rule) ? ruleKey(rule) : undefined;
      if (key !== undefined && isWritableKey(key)) old.set(`${chain} ${key}`, append(chain, rule));
      yield;
    }
  }
  return old;
}

/**
 * Compares the chains that a plan needs with those that there are; yields after each of them.
 *
 * @param existing the kernel's group chains with the digests of their rules
 */
export function* survey(
  plan: ForwardingPlan,
  context: RenderContext,
  existing: ReadonlyMap<string, string>,
): Generator<void, Survey> {
  if (existing.size === 0) return { done: new Set(), rulesDone: 0, stale: new Set() };
  const stale = new Set(existing.keys());
  for (const { chain } of markChains(context)) stale.delete(chain);
  const done = new Set<string>();
  let rulesDone = 0;
  for (const group of plan.groups.values()) {
    let [rules, same] = [0, true];
    for (const chain of chainsOf(groupChains(group, context))) {
      stale.delete(chain.chain);
      rules += chain.rules.length;
      same &&= existing.get(chain.chain) === (yield* digestInSteps(chain.rules));
      yield;
    }
    if (!same) continue;
    done.add(group.id);
    rulesDone += rules;
  }
  return { done, rulesDone, stale };
}

/** Stands for the rules of a chain, given as iptables-save prints them less `-A CHAIN `. */
export function digestOf(rules: readonly string[]): string {
  return btoa(sha256(rules.join("\n")));
}

function* counted({ totals }: FullPlan, chains: Iterable<ChainRules>): Generator<ChainRules> {
  for (const chain of chains) {
    totals.nat += chain.rules.length;
    yield chain;
  }
}

function* fillRest(full: FullPlan, chain: string, rules: readonly Rule[]): Generator<Command> {
  full.totals.nat += rules.length;
  for (const rule of rules) yield append(chain, rule);
}

/** All groups' rules in the shared chains of one table that belong to one end of them. */
function* allDispatch(full: FullPlan, table: DispatchRule["table"], end: DispatchRule["end"]): Generator<DispatchRule> {
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

function rulesOf(state: TableState, chain: string): readonly Rule[] {
  return state.chains.get(chain)?.rules ?? [];
}

/**
 * Rules of this mode have matches and targets of known types. What another program put into our chains goes at once:
 * written again, it might not be the same, or be refused.
 */
function isTyped({ matches, target }: Rule): boolean {
  return target?.kind !== "unknown" && matches.every(({ kind }) => kind !== "unknown" && kind !== "unreadable");
}

/** The same of rules that are yet to be printed; yields after each few of them. */
function* digestInSteps(rules: RuleList): Generator<void, string> {
  if (rules.length <= RULES_AT_ONCE) return digestOf(Array.from(rules, renderRule));
  const digest = startDigest();
  let count = 0;
  for (const rule of rules) {
    digest.update(count === 0 ? renderRule(rule) : `\n${renderRule(rule)}`);
    if (++count % RULES_AT_ONCE === 0) yield;
  }
  return digest.base64();
}

const RULES_AT_ONCE = 16;
