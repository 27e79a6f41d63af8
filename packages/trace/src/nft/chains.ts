/** Walks through chains of nftables: from base chains to the rules, with all results where a rule draws a number. */

import type { IPFamily } from "@fairlead/netfilter";
import {
  type BaseChain,
  type Expression,
  hostHex,
  IP_FAMILY,
  type NftChain,
  type NftRule,
  type NftTable,
} from "@fairlead/netfilter/nft";
import { TraceError, type Visit } from "../outcome.ts";
import type { Hook, TableName } from "../packet.ts";
import {
  type Chain,
  leavesForGood,
  mayAssumeMore,
  NEXT,
  type RuleVerdict,
  type Walk,
  type WalkContext,
  withAssumption,
} from "../walk.ts";
import { isSameWalk, walkKey } from "../ways.ts";
import { evaluateExpression } from "./expressions.ts";
import { type Assumed, type NftRuleContext, NftSets, Registers, type Result } from "./rule-context.ts";

interface BaseStage {
  readonly name: TableName;
  readonly base: BaseChain;
  readonly chain: Chain;
}

/** By chain and place: a plan has one rule object at many places. */
const known = new WeakMap<readonly NftRule[], Map<number, number>>();

/** The chains of one table of nftables, prepared when a packet first reaches them. */
export class NftChains {
  readonly #table: NftTable;
  readonly #sets: NftSets;
  readonly #chains = new Map<string, Chain>();

  constructor(table: NftTable) {
    this.#table = table;
    this.#sets = new NftSets(table);
  }

  /** Those that packets of the family come to at a hook, in the order of the table. */
  bases(family: IPFamily, hook: Hook): readonly BaseStage[] {
    const { family: own, name, chains } = this.#table;
    if (IP_FAMILY[own] !== family) return [];
    return Array.from(chains.values()).flatMap(({ name: chainName, base }) => {
      const chain = base?.hook === hook.toLowerCase() ? this.#chain(chainName) : undefined;
      return chain === undefined || base === undefined ? [] : [{ name: `${own} ${name}` as const, base, chain }];
    });
  }

  #chain(name: string): Chain | undefined {
    const known = this.#chains.get(name);
    if (known !== undefined) return known;
    const found = this.#table.chains.get(name);
    if (found === undefined) return undefined;
    const chain = new NftRuleChain(this.#table, found, this.#sets, (other) => this.#chain(other));
    this.#chains.set(name, chain);
    return chain;
  }
}

/** One way that a packet may take through a rule. */
interface Branch {
  readonly walk: Walk;
  readonly step: RuleVerdict;
  /** The rule went to its end, or gave a verdict. */
  readonly matched: boolean;
  readonly assumed: Assumed | undefined;
}

class NftRuleChain implements Chain {
  readonly sibling: Chain["sibling"];
  readonly #table: NftTable;
  readonly #chain: NftChain;
  readonly #sets: NftSets;

  constructor(table: NftTable, chain: NftChain, sets: NftSets, sibling: Chain["sibling"]) {
    this.sibling = sibling;
    this.#table = table;
    this.#chain = chain;
    this.#sets = sets;
  }

  get name(): string {
    return this.#chain.name;
  }

  get policy(): Chain["policy"] {
    return this.#chain.base?.policy === "drop" ? "DROP" : "ACCEPT";
  }

  undecidable(index: number, problem: string): TraceError {
    const rule = this.#chain.rules[index] ?? { expressions: [] };
    return TraceError.ofNftRule({ table: this.#table, chain: this.name, index, rule }, problem);
  }

  step(walk: Walk, ways: WalkContext): RuleVerdict | undefined {
    const rule = this.#chain.rules[walk.index];
    if (rule === undefined) return undefined;
    const [first, ...others] = ways.merged ? this.#drawn(rule, walk, ways) : this.#branches(rule, walk, ways);
    for (const { walk: other, step } of others) ways.fork({ ...other, said: step });
    // Every evaluation ends at least in one way.
    if (first === undefined) throw this.undecidable(walk.index, "the rule ends in no way");
    if (first.walk !== walk) Object.assign(walk, first.walk);
    return first.step;
  }

  /** What draws again goes on before what was drawn, so that its draws find the equal ones still to be walked. */
  #drawn(rule: NftRule, walk: Walk, ways: WalkContext): readonly Branch[] {
    const times = repeats(this.#chain.rules, walk.index);
    const before = times > 0 ? { ...walk } : walk;
    const branches = drawnAgain(this.#branches(rule, walk, ways), before, times);
    return branches.length > 1 ? branches.toSorted(nextFirst) : branches;
  }

  #branches(rule: NftRule, walk: Walk, ways: WalkContext): readonly Branch[] {
    const visit = this.#visit(rule, walk);
    const place = {
      walk,
      host: ways.host,
      rule,
      sets: this.#sets,
      registers: new Registers(),
      assuming: ways.assuming && mayAssumeMore(walk),
      assumed: undefined,
      undecidable: (problem: string) => this.undecidable(visit.index, problem),
    };
    const { visits: before, assumed: assumedBefore } = walk;
    const branches = evaluate(place, 0);
    for (const { walk: way, assumed, matched } of branches) {
      if (matched) way.visits = { item: visit, before };
      if (assumed !== undefined) way.assumed = withAssumption(assumedBefore, visit, assumed);
    }
    return branches;
  }

  #visit(rule: NftRule, { hook, index }: Walk): Visit {
    const { family, name } = this.#table;
    return { hook, table: `${family} ${name}`, chain: this.name, index, nft: { table: this.#table, rule } };
  }
}

function nextFirst(one: Branch, other: Branch): number {
  return Number(other.step === NEXT) - Number(one.step === NEXT);
}

type Draw = Extract<NonNullable<Result>, { readonly kind: "draw" }>;
type Choice = Extract<NonNullable<Result>, { readonly kind: "choice" }>;

/** More numbers than these are not tried one by one. */
const MAX_DRAWN = 0x2_0000;

/** All ways through the rest of a rule. Indistinguishable ones are one, with the sum of their chances. */
function evaluate(place: NftRuleContext, from: number): readonly Branch[] {
  const { expressions } = place.rule;
  for (const [at, expression] of expressions.entries()) {
    if (at < from) continue;
    const result = evaluateExpression(expression, place);
    if (result === undefined) continue;
    switch (result.kind) {
      case "break":
        return [branch(place, NEXT, false)];
      case "draw":
        return draw(place, result, at + 1);
      case "choice":
        return choose(place, result, at + 1);
      case "open":
        if (place.assumed === undefined) return assume(place, result.problem, at + 1);
        continue;
      default:
        return [branch(place, result, true)];
    }
  }
  return [branch(place, NEXT, true)];
}

function branch({ walk, assumed }: NftRuleContext, step: RuleVerdict, matched: boolean): Branch {
  return { walk, step, matched, assumed };
}

function draw(place: NftRuleContext, { modulus, to }: Draw, from: number): readonly Branch[] {
  if (modulus > MAX_DRAWN) throw place.undecidable(`the tracer does not try ${modulus} numbers one by one`);
  const among = Array.from({ length: modulus }, (_, number) => ({ value: hostHex(number), share: 1 / modulus }));
  return choose(place, { to, among }, from);
}

function choose(place: NftRuleContext, { to, among }: Pick<Choice, "to" | "among">, from: number): readonly Branch[] {
  const merged = new Map<string, Branch[]>();
  for (const { value, share } of among) {
    const copy = copyOf(place, place.walk.probability * share);
    copy.registers.load(to, value);
    for (const one of evaluate(copy, from)) merge(merged, one);
  }
  return [...merged.values()].flat();
}

function merge(merged: Map<string, Branch[]>, one: Branch): void {
  const key = JSON.stringify([one.step, one.matched, walkKey(one.walk)]);
  const alike = merged.get(key) ?? [];
  merged.set(key, alike);
  const same = alike.find(({ walk, assumed }) => isSameWalk(walk, one.walk) && assumed === one.assumed);
  if (same === undefined) alike.push(one);
  else same.walk.probability += one.walk.probability;
}

/** Goes on as if the expression matched, and on another way as if it did not. */
function assume(place: NftRuleContext, problem: string, from: number): readonly Branch[] {
  if (!place.assuming) throw place.undecidable(problem);
  const { probability } = place.walk;
  const matching = evaluate({ ...copyOf(place, probability), assumed: { problem, matched: true } }, from);
  // The rule makes no difference, or another of its matches fails.
  if (matching.every(({ step, walk }) => step === NEXT && isSameWalk(walk, place.walk))) {
    return [branch(place, NEXT, false)];
  }
  const not = branch({ ...copyOf(place, probability), assumed: { problem, matched: false } }, NEXT, false);
  return [...matching, not];
}

function copyOf(place: NftRuleContext, probability: number): NftRuleContext {
  return { ...place, walk: { ...place.walk, probability }, registers: place.registers.copy() };
}

/** How many rules behind one that draws say the same as it does; 0 for one that does not draw. */
function repeats(rules: readonly NftRule[], index: number): number {
  const rule = rules[index];
  if (rule === undefined || !rule.expressions.some(draws)) return 0;
  const counts = known.get(rules) ?? new Map<number, number>();
  known.set(rules, counts);
  const before = counts.get(index);
  if (before !== undefined) return before;
  const text = ruleText(rule);
  let count = 0;
  while (ruleText(rules[index + count + 1]) === text) count += 1;
  counts.set(index, count);
  return count;
}

function draws({ kind }: Expression): boolean {
  return kind === "numgen" || kind === "hash";
}

function ruleText(rule: NftRule | undefined): string | undefined {
  return rule && JSON.stringify(rule.expressions);
}

/**
 * What all of a rule and the equal ones behind it come to, where a draw that they make nothing of leads from each to
 * the next: each draws from what is left, and sends the same part of it to the same places.
 *
 * @param branches of the first rule
 * @param walk as it came to it
 * @param times how many rules behind it are equal
 * @returns the same branches where that is not so
 */
function drawnAgain(branches: readonly Branch[], walk: Walk, times: number): readonly Branch[] {
  const going = branches.filter(({ step }) => step.kind === "next");
  const [again] = going;
  const { probability } = walk;
  const isAgain =
    times > 0 &&
    going.length === 1 &&
    again !== undefined &&
    again.walk !== walk &&
    isSameWalk(again.walk, walk) &&
    branches.every((one) => one === again || leavesForGood(one.step));
  if (!isAgain) return branches;
  const left = again.walk.probability / probability;
  const all = (1 - left ** (times + 1)) / (1 - left);
  return branches.map((one) => {
    const walked =
      one === again
        ? { probability: probability * left ** (times + 1), index: walk.index + times }
        : { probability: one.walk.probability * all };
    return { ...one, walk: { ...one.walk, ...walked } };
  });
}
