import {
  type Rule,
  type RuleSet,
  renderRule,
  statisticProbability,
  type Table,
  type TableState,
} from "@fairlead/netfilter";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TraceError, trace } from "../src/index.ts";
import { HOST, packet } from "./rule-set.ts";

const CHAINS = ["FORWARD", "A", "B", "C"] as const;
type Chain = (typeof CHAINS)[number];

/** Rules that ask for a mark's bit and then set one, choose or go on: all that decides the order of a walk. */
const target = (chains: readonly Chain[]) =>
  fc.oneof(
    fc.constantFrom<Rule["target"]>({ kind: "accept" }, { kind: "drop" }, { kind: "return" }),
    fc.nat(3).map((bit): Rule["target"] => ({ kind: "mark", value: 1 << bit, mask: 0 })),
    ...(chains.length === 0
      ? []
      : [
          fc
            .record({ kind: fc.constantFrom("jump", "goto"), chain: fc.constantFrom(...chains) })
            .map((call): Rule["target"] => call),
        ]),
  );

const condition = fc.oneof(
  { weight: 2, arbitrary: fc.constant([]) },
  {
    weight: 2,
    arbitrary: fc.nat(3).map((bit): Rule["matches"] => [{ kind: "mark", value: 1 << bit, mask: 1 << bit }]),
  },
);

const choice = fc
  .nat(0x80000000)
  .map((count): Rule["matches"] => [
    { kind: "statistic", mode: "random", probability: statisticProbability(count / 0x80000000) },
  ]);

function ruleOf(matches: fc.Arbitrary<Rule["matches"]>, chains: readonly Chain[]): fc.Arbitrary<Rule> {
  return fc
    .record({ matches, target: fc.option(target(chains), { nil: undefined }) })
    .map(({ matches: asked, target: goal }) => ({ matches: asked, ...(goal === undefined ? {} : { target: goal }) }));
}

/** @param callees the chains that each one may call */
function programs(
  matches: fc.Arbitrary<Rule["matches"]>,
  callees: (chain: Chain) => readonly Chain[],
): fc.Arbitrary<RuleSet> {
  const rules = (chain: Chain) => fc.array(ruleOf(matches, callees(chain)), { maxLength: 5 });
  return fc
    .record({
      FORWARD: rules("FORWARD"),
      A: rules("A"),
      B: rules("B"),
      C: rules("C"),
      policy: fc.constantFrom("ACCEPT", "DROP"),
    })
    .filter((chains) => forksOf(chains) <= MOST_FORKS)
    .map(({ policy, ...chains }) => new Map([["filter", tableOf(chains, policy)]]) satisfies RuleSet);
}

/** A walk that meets more choices has more ways than are looked at one by one; the tracer itself refuses 100,000. */
const MOST_FORKS = 10;

/** How many choices one walk meets at most, where each chain calls later ones only. */
function forksOf(rules: Readonly<Record<Chain, readonly Rule[]>>): number {
  const visits = new Map<string, number>([["FORWARD", 1]]);
  let forks = 0;
  for (const chain of CHAINS) {
    const times = visits.get(chain) ?? 0;
    for (const { matches, target: goal } of rules[chain]) {
      if (matches.some(({ kind }) => kind === "statistic")) forks += times;
      if (goal?.kind !== "jump" && goal?.kind !== "goto") continue;
      visits.set(goal.chain, (visits.get(goal.chain) ?? 0) + times);
    }
  }
  return forks;
}

function tableOf(rules: Record<Chain, Rule[]>, policy: "ACCEPT" | "DROP"): TableState & { table: Table } {
  const chains = CHAINS.map(
    (name) => [name, { name, rules: rules[name], ...(name === "FORWARD" ? { policy } : {}) }] as const,
  );
  return { table: "filter", chains: new Map(chains) };
}

/** Without loops: each chain calls later ones only. */
const later = (chain: Chain) => CHAINS.slice(CHAINS.indexOf(chain) + 1);

/**
 * The same meaning in another form, as a recursion: a chain ends in a verdict or returns; goto is a call whose return
 * is one's own.
 */
function model(ruleSet: RuleSet): { verdict: string; mark: number } {
  const chains = ruleSet.get("filter")?.chains;
  let mark = 0;
  const asked = ({ matches }: Rule) =>
    matches.every((match) => match.kind === "mark" && (mark & match.mask) === match.value);
  const run = (name: string): string => {
    for (const rule of chains?.get(name)?.rules.values() ?? []) {
      const result = asked(rule) ? follow(rule.target) : undefined;
      if (result !== undefined) return result;
    }
    return "return";
  };
  const follow = (goal: Rule["target"]): string | undefined => {
    if (goal?.kind === "mark") mark ^= goal.value;
    if (goal?.kind === "goto") return run(goal.chain);
    if (goal?.kind !== "jump") return goal?.kind === "mark" ? undefined : goal?.kind;
    const result = run(goal.chain);
    return result === "return" ? undefined : result;
  };
  const end = run("FORWARD");
  const policy = chains?.get("FORWARD")?.policy === "DROP" ? "drop" : "accept";
  return { verdict: end === "return" ? policy : end, mark };
}

describe("any rule set", () => {
  test("walks as the recursion does", () => {
    fc.assert(
      fc.property(programs(condition, later), (rules) => {
        expect(trace(rules, packet(), HOST)).toMatchObject([{ ...model(rules), probability: 1 }]);
      }),
      { numRuns: runs(1000) },
    );
  });

  test("the probabilities of its ways sum up to 1", () => {
    fc.assert(
      fc.property(programs(fc.oneof(condition, choice), later), (rules) => {
        const outcomes = trace(rules, packet(), HOST);
        expect(outcomes.reduce((sum, { probability }) => sum + probability, 0)).toBeCloseTo(1, 12);
        for (const { probability } of outcomes) expect(probability).toBeGreaterThan(0);
      }),
      { numRuns: runs(500) },
    );
  });

  test("a loop is found or never entered", () => {
    fc.assert(
      fc.property(
        programs(condition, () => ["A", "B", "C"]),
        (rules) => {
          try {
            expect(trace(rules, packet(), HOST)).toHaveLength(1);
          } catch (error) {
            expect(error).toBeInstanceOf(TraceError);
            expect(error).toMatchObject({ message: expect.stringContaining("the chains are a loop") });
          }
        },
      ),
      { numRuns: runs(500) },
    );
  });

  test("the visits are rules of the set, in their places", () => {
    fc.assert(
      fc.property(programs(fc.oneof(condition, choice), later), (rules) => {
        for (const { visits } of trace(rules, packet(), HOST)) {
          for (const visit of visits) {
            if ("nft" in visit) throw new Error("no table of nftables was given");
            const { table, chain, index, rule } = visit;
            expect(rules.get(table)?.chains.get(chain)?.rules[index]).toBe(rule);
            expect(renderRule(rule)).toBeTypeOf("string");
          }
        }
      }),
    );
  });
});
