import type { Rule } from "@fairlead/netfilter";
import { type FakeKernel, limitsOf } from "./kernel.ts";
import { jumpOf, type TableDraft } from "./table.ts";

/** The built-in chains from which packets can come to a chain; itself, where it is one. */
export function hooksOf(draft: TableDraft, chain: string): ReadonlySet<string> {
  const hooks = new Set<string>();
  const seen = new Set([chain]);
  for (const name of seen) {
    if (draft.table.isBuiltin(name)) hooks.add(name);
    for (const referrer of draft.referrers(name).keys()) seen.add(referrer);
  }
  return hooks;
}

/**
 * Whether the kernel lets packets go on from the chain by this rule, which stands in the draft already.
 *
 * @returns its error: a loop, or a target that does not work where packets may come from
 */
export function checkReach(
  kernel: FakeKernel,
  draft: TableDraft,
  chain: string,
  rule: Rule,
): "Too many links" | "Invalid argument" | undefined {
  const hooks = hooksOf(draft, chain);
  if (!targetWorks(kernel, hooks, rule)) return "Invalid argument";
  const next = jumpOf(rule);
  if (hooks.size === 0 || next === undefined) return undefined;
  const seen = new Set([next]);
  for (const name of seen) {
    if (name === chain) return "Too many links";
    for (const below of draft.chain(name)?.rules ?? []) {
      if (!targetWorks(kernel, hooks, below)) return "Invalid argument";
      const target = jumpOf(below);
      if (target !== undefined) seen.add(target);
    }
  }
  // A loop further down was unreachable until now and did no harm.
  return hasLoop(draft, next, new Set(), new Set()) ? "Too many links" : undefined;
}

function targetWorks({ variant }: FakeKernel, hooks: ReadonlySet<string>, rule: Rule): boolean {
  const limits = rule.target && limitsOf(rule.target.kind, variant);
  return limits === undefined || [...hooks].every((hook) => limits.hooks.includes(hook));
}

function hasLoop(draft: TableDraft, name: string, above: Set<string>, done: Set<string>): boolean {
  if (above.has(name)) return true;
  if (done.has(name)) return false;
  above.add(name);
  for (const rule of draft.chain(name)?.rules ?? []) {
    const next = jumpOf(rule);
    if (next !== undefined && hasLoop(draft, next, above, done)) return true;
  }
  above.delete(name);
  done.add(name);
  return false;
}
