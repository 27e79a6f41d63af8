import type { ChainState, Rule, SavedChain } from "@fairlead/netfilter";

/**
 * The rules of a chain that may say something, by their text where there is one: of large listings few rules are read.
 */
export function* rulesSaying(chain: ChainState | SavedChain, something: RegExp): Generator<Rule, void, undefined> {
  if (!("ruleAt" in chain)) return yield* chain.rules;
  for (const [at, text] of chain.texts.entries()) {
    const rule = something.test(text) ? chain.ruleAt(at) : undefined;
    if (rule !== undefined) yield rule;
  }
}
