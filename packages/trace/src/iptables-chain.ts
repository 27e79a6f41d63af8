/** Walks through chains of iptables. */

import type { RuleSet, Table } from "@fairlead/netfilter";
import { type CompiledChain, compileChain } from "./compile.ts";
import { matchesHeader, matchProbability, type RuleContext } from "./matches.ts";
import { TraceError, type Visit } from "./outcome.ts";
import { applyTarget, isNeutral } from "./targets.ts";
import {
  type Chain,
  mayAssumeMore,
  NEXT,
  type RuleVerdict,
  type Walk,
  type WalkContext,
  withAssumption,
} from "./walk.ts";

/**
 * A rule set whose chains are looked at when a packet first reaches them, and their rules likewise: most packets reach
 * few of many.
 */
export class CompiledRuleSet {
  readonly #ruleSet: RuleSet;
  readonly #chains = new Map<Table, Map<string, Chain>>();

  constructor(ruleSet: RuleSet) {
    this.#ruleSet = ruleSet;
  }

  chain(table: Table, name: string): Chain | undefined {
    const compiled = this.#chains.get(table) ?? new Map<string, Chain>();
    this.#chains.set(table, compiled);
    const known = compiled.get(name);
    if (known !== undefined) return known;
    const state = this.#ruleSet.get(table)?.chains.get(name);
    if (state === undefined) return undefined;
    const chain = new IptablesChain(compileChain(table, state), (other) => this.chain(table, other));
    compiled.set(name, chain);
    return chain;
  }
}

class IptablesChain implements Chain {
  readonly sibling: Chain["sibling"];
  readonly #chain: CompiledChain;

  constructor(chain: CompiledChain, sibling: Chain["sibling"]) {
    this.#chain = chain;
    this.sibling = sibling;
  }

  get name(): string {
    return this.#chain.name;
  }

  get policy(): Chain["policy"] {
    return this.#chain.policy;
  }

  undecidable(index: number, problem: string): TraceError {
    const { table, name } = this.#chain;
    return TraceError.ofRule(
      { table, chain: name, index, rule: this.#chain.rule(index)?.rule ?? { matches: [] } },
      problem,
    );
  }

  step(walk: Walk, ways: WalkContext): RuleVerdict | undefined {
    walk.index = this.#chain.next(walk.index, walk.destination.words);
    const rule = this.#chain.rule(walk.index);
    if (rule === undefined) return undefined;
    const place = { walk, host: ways.host, chain: this.#chain, rule };
    if (!matches(place, ways)) return NEXT;
    walk.visits = { item: visitOf(place), before: walk.visits };
    const { target } = rule.rule;
    return target === undefined ? NEXT : applyTarget(target, place);
  }
}

/** Matches that can't be decided count only where all others match. */
function matches(place: RuleContext, ways: WalkContext): boolean {
  const { walk, rule } = place;
  let open: TraceError | undefined;
  const decide = (question: () => number): number => {
    try {
      return question();
    } catch (error) {
      if (!ways.assuming || !(error instanceof TraceError)) throw error;
      open ??= error;
      return 1;
    }
  };
  if (decide(() => (matchesHeader(place) ? 1 : 0)) === 0) return false;
  for (const match of rule.rule.matches) {
    const probability = decide(() => matchProbability(match, place));
    if (probability === 0) return false;
    if (probability < 1) choose(walk, probability, ways);
  }
  return open === undefined || assume(place, open, ways);
}

/** Goes on with the packets that match; the others go on at the next rule. */
function choose(walk: Walk, probability: number, ways: WalkContext): void {
  ways.fork({ ...walk, index: walk.index + 1, probability: walk.probability * (1 - probability) });
  walk.probability *= probability;
}

/** Goes on as if the rule matched, and on another way as if it did not. */
function assume(place: RuleContext, error: TraceError, ways: WalkContext): boolean {
  const { walk, rule } = place;
  if (isNeutral(rule.rule.target)) return false;
  if (!mayAssumeMore(walk)) throw error;
  const { problem } = error;
  const as = (matched: boolean) => withAssumption(walk.assumed, visitOf(place), { problem, matched });
  ways.fork({ ...walk, index: walk.index + 1, assumed: as(false) });
  walk.assumed = as(true);
  return true;
}

function visitOf({ walk, chain, rule }: RuleContext): Visit {
  return { hook: walk.hook, table: chain.table, chain: chain.name, index: rule.index, rule: rule.rule };
}
