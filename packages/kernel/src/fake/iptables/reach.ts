import type { ChainState, Rule } from "@fairlead/netfilter";
import { type FakeKernel, limitsOf } from "./kernel.ts";
import { jumpOf, type TableDraft } from "./table.ts";

/** Errors of a kernel that follows the ways of packets through the chains. */
export type ReachError = "Too many links" | "Invalid argument";

/**
 * nft, when a rule was added to a chain: whether packets may go on by it.
 *
 * @returns a loop, or a target that does not work where packets may come from
 */
export function checkRuleReach(ways: TableCheck, chain: string, rule: Rule): ReachError | undefined {
  const hooks = hooksOf(ways, chain);
  if (hooks.size === 0) return undefined;
  if (!targetWorks(hooks, rule)) return "Invalid argument";
  const next = jumpOf(rule);
  return next === undefined ? undefined : checkBelow(ways, next, hooks);
}

/** legacy, when a table is committed: whether packets may go on from a chain that was changed. */
export function checkChainReach(ways: TableCheck, chain: string): ReachError | undefined {
  const hooks = hooksOf(ways, chain);
  return hooks.size === 0 ? undefined : checkBelow(ways, chain, hooks);
}

/** The work on a table whose ways are followed. */
export interface TableCheck {
  readonly kernel: FakeKernel;
  readonly draft: TableDraft;
  /** Rules that the kernel never gets to see. */
  readonly withheld: ReadonlySet<Rule>;
}

/** The built-in chains from which packets can come to a chain; itself, where it is one. */
function hooksOf(ways: TableCheck, chain: string): ReadonlySet<string> {
  const { draft } = ways;
  const hooks = new Set<string>();
  const seen = new Set([chain]);
  for (const name of seen) {
    if (draft.table.isBuiltin(name)) hooks.add(name);
    for (const referrer of draft.referrers(name)) {
      if (liveRules(ways, draft.chain(referrer)).some((rule) => jumpOf(rule) === name)) seen.add(referrer);
    }
  }
  return hooks;
}

function checkBelow(ways: TableCheck, start: string, hooks: ReadonlySet<string>): ReachError | undefined {
  const seen = new Set([start]);
  for (const name of seen) {
    for (const rule of liveRules(ways, ways.draft.chain(name))) {
      if (!targetWorks(hooks, rule)) return "Invalid argument";
      const next = jumpOf(rule);
      if (next !== undefined) seen.add(next);
    }
  }
  return hasLoop(ways, start, new Set(), new Set()) ? "Too many links" : undefined;
}

/** x_tables does not look at what stands behind a rule that every packet ends at. */
function liveRules({ kernel, withheld }: TableCheck, chain: ChainState | undefined): readonly Rule[] {
  const all = chain?.rules ?? [];
  const rules = withheld.size === 0 ? all : all.filter((rule) => !withheld.has(rule));
  const last = kernel.variant === "nft" ? -1 : rules.findIndex(endsAll);
  return last < 0 ? rules : rules.slice(0, last + 1);
}

function endsAll({ matches, target, ...conditions }: Rule): boolean {
  if (matches.length > 0 || Object.keys(conditions).length > 0) return false;
  return target?.kind === "accept" || target?.kind === "drop" || target?.kind === "return";
}

function targetWorks(hooks: ReadonlySet<string>, rule: Rule): boolean {
  const limits = rule.target && limitsOf(rule.target.kind);
  return limits === undefined || [...hooks].every((hook) => limits.hooks.includes(hook));
}

function hasLoop(ways: TableCheck, name: string, above: Set<string>, done: Set<string>): boolean {
  if (above.has(name)) return true;
  if (done.has(name)) return false;
  above.add(name);
  for (const rule of liveRules(ways, ways.draft.chain(name))) {
    const next = jumpOf(rule);
    if (next !== undefined && hasLoop(ways, next, above, done)) return true;
  }
  above.delete(name);
  done.add(name);
  return false;
}
