import type { BaseChain, Expression } from "@fairlead/netfilter/nft";
import type { FakeTable } from "./state.ts";
import { chainOf, verdictOf } from "./uses.ts";
import type { Refused } from "./work.ts";

/** NFT_JUMP_STACK_SIZE: chains that packets can be in at once. */
const DEEPEST = 16;

/** Where expressions can be: the chains' type, and the hooks (nft_chain_validate_dependency, …_hooks). */
const PLACES: Partial<
  Record<Expression["kind"], { readonly type?: "nat"; readonly hooks: readonly BaseChain["hook"][] }>
> = {
  nat: { type: "nat", hooks: ["prerouting", "output"] },
  masq: { type: "nat", hooks: ["postrouting"] },
  reject: { hooks: ["prerouting", "input", "forward", "output"] },
};

/**
 * Follows the ways of packets from all base chains, over rules and over the elements of verdict maps that rules look
 * into (nft_table_validate).
 */
export function followWays(table: FakeTable): Refused {
  for (const { name, base } of table.chains.values()) {
    if (base === undefined) continue;
    const refused = new Follower(table, base).follow(name, 0);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

class Follower {
  readonly #table: FakeTable;
  readonly #base: BaseChain;
  /** How deep chains were followed already. */
  readonly #depths = new Map<string, number>();

  constructor(table: FakeTable, base: BaseChain) {
    this.#table = table;
    this.#base = base;
  }

  follow(name: string, depth: number): Refused {
    if (depth === DEEPEST) return "EMLINK";
    if ((this.#depths.get(name) ?? -1) >= depth) return undefined;
    this.#depths.set(name, depth);
    for (const { expressions } of this.#table.chains.get(name)?.rules ?? []) {
      for (const expression of expressions) {
        const refused = this.#misplaced(expression) ?? this.#followAll(targetsOf(this.#table, expression), depth + 1);
        if (refused !== undefined) return refused;
      }
    }
    return undefined;
  }

  #followAll(chains: Iterable<string>, depth: number): Refused {
    for (const chain of chains) {
      const refused = this.follow(chain, depth);
      if (refused !== undefined) return refused;
    }
    return undefined;
  }

  #misplaced({ kind }: Expression): Refused {
    const place = PLACES[kind];
    if (place === undefined) return undefined;
    const { type, hook } = this.#base;
    return (place.type ?? type) === type && place.hooks.includes(hook) ? undefined : "ENOTSUP";
  }
}

function* targetsOf(table: FakeTable, expression: Expression): Generator<string, void, void> {
  const target = chainOf(verdictOf(expression));
  if (target !== undefined) yield target;
  if (expression.kind !== "lookup" || expression.to !== "verdict") return;
  for (const { element } of table.sets.get(expression.set)?.elements.values() ?? []) {
    const chain = chainOf(element.value);
    if (chain !== undefined) yield chain;
  }
}
