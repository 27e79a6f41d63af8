import { renderRule } from "@fairlead/netfilter";
import type { ChainRules } from "./chain-rules.ts";
import type { GroupRules } from "./group.ts";

/** A group's own chains that have to be written, and those that it needs no more. */
export interface ChainChange {
  readonly endpointChains: ChainRules[];
  readonly serviceChains: ChainRules[];
  readonly stale: string[];
}

/** Adds what it takes to get from a group's chains to its new ones; yields after each chain. */
export function* addChainChange(before: GroupRules, after: GroupRules, change: ChainChange): Generator<void, void> {
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
