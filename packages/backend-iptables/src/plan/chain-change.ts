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
  const old = new Map(before.map((chain) => [chain.chain, chain]));
  for (const chain of after) {
    const known = old.get(chain.chain);
    old.delete(chain.chain);
    if (known === undefined || textOf(known) !== textOf(chain)) written.push(chain);
    yield;
  }
  for (const chain of old.keys()) stale.push(chain);
}

function textOf(chain: ChainRules): string {
  return chain.rules.map(renderRule).join("\n");
}
