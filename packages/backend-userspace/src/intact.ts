import { type Rule, readRule, renderRule, ruleKey } from "@fairlead/netfilter";
import { CHAINS, TABLES } from "./plan/chains.ts";
import { jumps } from "./plan/jumps.ts";
import type { RulesPort } from "./port.ts";
import { chainKey, type Programmed, rulesByChain } from "./programmed.ts";

/**
 * The chains that lack a jump to ours, or that have other rules than were written, in whatever order: rules of
 * different services never match the same packet. One process lists a table.
 *
 * @returns in words, of the first table where any differs
 */
export async function differentChains(port: RulesPort, programmed: Programmed): Promise<readonly string[]> {
  const wanted = rulesByChain(programmed);
  for (const table of TABLES) {
    const builtins = jumps(programmed.context).filter((each) => each.table === table);
    const asked = [...builtins.map(({ chain }) => chain), ...CHAINS[table]];
    const found = await port.texts(table, asked);
    const has = (chain: string, rules: readonly Rule[]) => {
      const present = new Set(keys(found.get(chain) ?? [], port.family));
      return rules.every((rule) => present.has(ruleKey(rule)));
    };
    const different = [
      ...builtins.filter(({ chain, first, last }) => !has(chain, [...first, ...last])).map(({ chain }) => chain),
      ...CHAINS[table].filter(
        (chain) => !sameRules(found.get(chain), wanted.get(chainKey(table, chain)) ?? [], port.family),
      ),
    ];
    if (different.length > 0) return different.map((chain) => `chain ${chain} of the ${table} table`);
  }
  return [];
}

/** The texts are nearly always equal; another version of the tools may print a rule otherwise. */
function sameRules(
  found: readonly string[] | undefined,
  wanted: readonly Rule[],
  family: RulesPort["family"],
): boolean {
  if (found?.length !== wanted.length) return false;
  if (found.toSorted().join("\n") === wanted.map(renderRule).sort().join("\n")) return true;
  return keys(found, family).sort().join("\n") === wanted.map(ruleKey).sort().join("\n");
}

function keys(texts: readonly string[], family: RulesPort["family"]): string[] {
  return texts.map((text) => ruleKey(readRule(text, 0, family)));
}
