import type { NftChain, NftRule, NftTable } from "@fairlead/netfilter/nft";
import { mayAssumeMore, withAssumption } from "../assume.ts";
import { TraceError } from "../errors.ts";
import type { Visit } from "../outcome.ts";
import { NEXT, type RuleVerdict } from "../rule-verdict.ts";
import type { Chain, Walk, WalkContext } from "../walk.ts";
import { drawnAgain, repeats } from "./drawn-again.ts";
import { type Branch, evaluate } from "./evaluate.ts";
import { Registers } from "./registers.ts";
import type { NftSets } from "./sets.ts";

/** A chain of a table of nftables. */
export class NftRuleChain implements Chain {
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
