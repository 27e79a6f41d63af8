/** What a change of the plan comes to in chains. */

import type { PlanChange } from "@fairlead/core";
import { type Command, renderRule } from "@fairlead/netfilter";
import type { DispatchRule } from "./dispatch.ts";
import { nodePortJumps } from "./frame.ts";
import { type GroupRules, groupRules } from "./group.ts";
import { SERVICES } from "./group-names.ts";
import { append, type ChainRules, remove } from "./rule-parts.ts";
import type { RenderContext, Totals } from "./settings.ts";

/** A group's own chains that have to be written, and those that it needs no more. */
interface ChainChange {
  readonly endpointChains: ChainRules[];
  readonly serviceChains: ChainRules[];
  readonly stale: string[];
}

/** Single rules to add to and to delete from the shared chains. */
interface DispatchChange {
  /** Rules that refuse packets come before nat stops to send those on, … */
  readonly filterFirst: Command[];
  readonly nat: Command[];
  /** … and go after nat has begun to. */
  readonly filterLast: Command[];
}

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

/** Adds what it takes to get from a group's chains to its new ones; yields after each chain. */
function* addChainChange(before: GroupRules, after: GroupRules, change: ChainChange): Generator<void, void> {
  yield* addChanged(before.endpointChains, after.endpointChains, change.endpointChains, change.stale);
  yield* addChanged(before.serviceChains, after.serviceChains, change.serviceChains, change.stale);
}

function* addChanged(
  before: readonly ChainRules[],
  after: readonly ChainRules[],
  written: ChainRules[],
  stale: string[],
): Generator<void, void> {
  const old = new Map<string, ChainRules>();
  for (const chain of before) yield void old.set(chain.chain, chain);
  for (const chain of after) {
    const known = old.get(chain.chain);
    old.delete(chain.chain);
    if (known === undefined || !(yield* haveOneText(known, chain))) written.push(chain);
    yield;
  }
  for (const chain of old.keys()) stale.push(chain);
}

/** Yields after each few rules. */
function* haveOneText({ rules }: ChainRules, other: ChainRules): Generator<void, boolean> {
  if (rules.length !== other.rules.length) return false;
  const others = other.rules[Symbol.iterator]();
  let count = 0;
  for (const rule of rules) {
    const next = others.next();
    if (next.done === true || renderRule(rule) !== renderRule(next.value)) return false;
    if (++count % RULES_AT_ONCE === 0) yield;
  }
  return true;
}

const RULES_AT_ONCE = 16;

/** Adds what it takes to get from a group's dispatch rules to its new ones. */
function addDispatchChange(
  before: readonly DispatchRule[],
  after: readonly DispatchRule[],
  change: DispatchChange,
): void {
  const [old, wanted] = [byKey(before), byKey(after)];
  for (const key of new Set([...old.keys(), ...wanted.keys()])) {
    replaceRules(old.get(key) ?? [], wanted.get(key) ?? [], change);
  }
}

function byKey(rules: readonly DispatchRule[]): ReadonlyMap<string, readonly DispatchRule[]> {
  return Map.groupBy(rules, ({ key }) => key);
}

/** Rules about the same packets, in the same chain: where one differs, all of them are written in their order. */
function replaceRules(before: readonly DispatchRule[], after: readonly DispatchRule[], change: DispatchChange): void {
  if (rulesText(before) === rulesText(after)) return;
  if ((before[0] ?? after[0])?.table === "nat") {
    change.nat.push(...before.map(removal), ...additions(after));
    return;
  }
  const { kept, gone } = partition(before, after);
  change.filterFirst.push(...kept.map(removal), ...additions(after));
  change.filterLast.push(...gone.map(removal));
}

/** Which rules of `before` stand in `after` too, each copy counted. */
function partition(before: readonly DispatchRule[], after: readonly DispatchRule[]) {
  const left = after.map(({ rule }) => renderRule(rule));
  const kept: DispatchRule[] = [];
  const gone: DispatchRule[] = [];
  for (const entry of before) {
    const index = left.indexOf(renderRule(entry.rule));
    if (index !== -1) left.splice(index, 1);
    (index === -1 ? gone : kept).push(entry);
  }
  return { kept, gone };
}

function removal({ chain, rule }: DispatchRule): Command {
  return remove(chain, rule);
}

function additions(rules: readonly DispatchRule[]): readonly Command[] {
  return rules.map(({ chain, rule, end }, index) =>
    end === "tail" ? append(chain, rule) : { kind: "insert", chain, position: index + 1, rule },
  );
}

function rulesText(rules: readonly DispatchRule[]): string {
  return rules.map(({ rule }) => renderRule(rule)).join("\n");
}
