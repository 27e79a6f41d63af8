import type { Command } from "@fairlead/netfilter";
import { emptyChain } from "./commands.ts";
import { usedEndpoints } from "./endpoint-chains.ts";
import { markChains } from "./frame.ts";
import { type FullPlan, writtenGroups } from "./full.ts";
import { endpointName } from "./group-names.ts";
import { serviceChainNames } from "./service-chains.ts";

/** `KUBE-SEP-` and one character of the hash: of 100,000 endpoints 3,000 have it in common, which are sorted in a few milliseconds. */
const HEAD = 10;

/** Names of chains by their heads. */
type ChainNames = Map<string, string[]>;

/** The names of all chains that `allChains` gives; yields after each group. */
export function* chainNames(full: FullPlan): Generator<void, ChainNames> {
  const names: ChainNames = new Map();
  for (const { chain } of markChains(full.context)) add(names, chain);
  for (const group of writtenGroups(full)) {
    for (const endpoint of usedEndpoints(group)) add(names, endpointName(group, endpoint));
    for (const chain of serviceChainNames(group)) add(names, chain);
    yield;
  }
  return names;
}

function add(names: ChainNames, name: string): void {
  const head = name.slice(0, HEAD);
  const others = names.get(head);
  if (others === undefined) names.set(head, [name]);
  else others.push(name);
}

/** Makes the chains, or empties them, the last name first; each part is sorted when it is asked for. */
export function* declarations(names: ChainNames): Generator<Command> {
  for (const [, some] of [...names].sort(([a], [b]) => (a < b ? 1 : -1))) {
    for (const name of some.sort().reverse()) yield emptyChain(name);
  }
}
