import type { ChainState, SavedChain } from "@fairlead/netfilter";
import { FacingRules } from "./facing-rules.ts";
import { type Heading, type RuleFacts, rulesOf } from "./rule-facts.ts";

type Chain = ChainState | SavedChain;

/** A chain on both sides. */
export class ChainPair {
  readonly #before: FacingRules;
  /** Absent: the same rules as before. */
  readonly #after: FacingRules | undefined;
  readonly #comparable: boolean;

  constructor(before: Chain | undefined, after: Chain | undefined) {
    this.#comparable = (before === undefined) === (after === undefined) && before?.policy === after?.policy;
    const rules = before === undefined ? [] : rulesOf(before);
    this.#before = new FacingRules(rules);
    if (after !== undefined && !(before !== undefined && isSame(before, after)))
      this.#after = new FacingRules(rulesOf(after));
  }

  /** The rules that packets may match, if they are the same on both sides. */
  rulesFor(protocol: string, headings: readonly Heading[]): readonly RuleFacts[] | undefined {
    if (!this.#comparable) return undefined;
    const before = this.#before.of(protocol, headings);
    const after = this.#after?.of(protocol, headings) ?? before;
    const same = before.length === after.length && before.every(({ text }, at) => text === after[at]?.text);
    return same ? before : undefined;
  }
}

function isSame(before: Chain, after: Chain): boolean {
  return "hasTextsOf" in before && "hasTextsOf" in after && before.hasTextsOf(after);
}
