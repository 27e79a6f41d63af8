import {
  type ChainFill,
  type Command,
  emptyChain,
  isWritableKey,
  type Rule,
  repairJumps,
  ruleEquals,
  ruleKey,
  type TableState,
} from "@fairlead/netfilter";
import { append, ensureRule, fillChains, remove } from "./commands.ts";
import { DISPATCH_CHAINS, forwardChain, LOCALNET_RULE } from "./frame.ts";
import { allDispatch, type FullPlan, rulesOf } from "./full.ts";
import { JUMPS, KUBELET_JUMP, KUBELET_JUMP_CHAINS } from "./jumps.ts";
import { CANARY, KUBELET_FIREWALL } from "./names.ts";

/**
 * Filter's part of a full sync. Rules that refuse packets and are wanted no more stay behind the new ones until nat has
 * taken over (`last`): a service that has endpoints again is refused until it is served, never let go unanswered.
 */
export class FilterFrame {
  readonly #full: FullPlan;
  readonly #state: TableState;
  /** Less those that are written anew. */
  readonly #old: Map<string, Command>;

  /** @param old what `oldRules` gives of the state */
  constructor(full: FullPlan, state: TableState, old: Map<string, Command>) {
    this.#full = full;
    this.#state = state;
    this.#old = old;
  }

  *first(): Generator<Command | ChainFill> {
    const { context, totals } = this.#full;
    for (const chain of [CANARY, ...DISPATCH_CHAINS.filter]) yield emptyChain(chain);
    yield* this.#dispatch("head");
    yield* this.#dispatch("tail");
    yield* this.#old.values();
    const forward = forwardChain(context);
    totals.filter += forward.rules.length;
    yield* fillChains([forward]);
    yield* this.#kubeletFirewall();
    for (const { table, chain, rules } of JUMPS) {
      if (table === "filter") yield* repairJumps(chain, { first: rules }, rulesOf(this.#state, chain));
    }
    for (const chain of KUBELET_JUMP_CHAINS) yield* ensureRule(chain, KUBELET_JUMP, rulesOf(this.#state, chain));
  }

  *last(): Generator<Command> {
    for (const old of this.#old.values()) if (old.kind === "append") yield remove(old.chain, old.rule);
  }

  *#dispatch(end: "head" | "tail"): Generator<Command> {
    for (const { chain, rule } of allDispatch(this.#full, "filter", end)) {
      if (this.#old.size > 0) this.#old.delete(`${chain} ${ruleKey(rule)}`);
      yield append(chain, rule);
    }
  }

  /** Kubelet's chain is shared: made where it is missing, given the rule where it lacks it, and never emptied. */
  *#kubeletFirewall(): Generator<Command> {
    if (!this.#state.chains.has(KUBELET_FIREWALL)) yield emptyChain(KUBELET_FIREWALL);
    if (!this.#full.context.localhost) return;
    this.#full.totals.filter++;
    const there = rulesOf(this.#state, KUBELET_FIREWALL).some((rule) => ruleEquals(rule, LOCALNET_RULE));
    if (!there) yield append(KUBELET_FIREWALL, LOCALNET_RULE);
  }
}

/**
 * Rules of the shared chains that may be ours, by chain and text, as commands that write them again. Yields after each.
 */
export function* oldRules(state: TableState): Generator<void, Map<string, Command>> {
  const old = new Map<string, Command>();
  for (const chain of DISPATCH_CHAINS.filter) {
    for (const rule of rulesOf(state, chain)) {
      const key = isTyped(rule) ? ruleKey(rule) : undefined;
      if (key !== undefined && isWritableKey(key)) old.set(`${chain} ${key}`, append(chain, rule));
      yield;
    }
  }
  return old;
}

/**
 * Rules of this mode have matches and targets of known types. What another program put into our chains goes at once:
 * written again, it might not be the same, or be refused.
 */
function isTyped({ matches, target }: Rule): boolean {
  return target?.kind !== "unknown" && matches.every(({ kind }) => kind !== "unknown" && kind !== "unreadable");
}
