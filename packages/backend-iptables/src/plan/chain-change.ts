import { renderRule } from "@fairlead/netfilter";
import type { ChainRules } from "./chain-rules.ts";
import type { GroupRules } from "./group.ts";

/** A group's own chains that have to be written, and those that it needs no more. */
export interface ChainChange {
  readonly endpointChains: ChainRules[];
  readonly serviceChains: ChainRules[];
  readonly stale: string[];
}

export function addChainChange(before: GroupRules, after: GroupRules, change: ChainChange): void {
  change.endpointChains.push(...changed(before.endpointChains, after.endpointChains, change.stale));
  change.serviceChains.push(...changed(before.serviceChains, after.serviceChains, change.stale));
}

function changed(before: readonly ChainRules[], after: readonly ChainRules[], stale: string[]): ChainRules[] {
  const old = new Map(before.map((chain) => [chain.chain, chain]));
  const written: ChainRules[] = [];
  for (const chain of after) {
    const known = old.get(chain.chain);
    old.delete(chain.chain);
    if (known === undefined || textOf(known) !== textOf(chain)) written.push(chain);
  }
  stale.push(...old.keys());
  return written;
}

function textOf(chain: ChainRules): string {
  return chain.rules.map(renderRule).join("\n");
}
