/** A full sync, and whether the rules are still as written. */

import { slices } from "@fairlead/base";
import type { ForwardingPlan } from "@fairlead/core";
import {
  type Command,
  type CommandSource,
  payloadText,
  type Rule,
  readRule,
  renderRule,
  restoreLines,
  ruleKey,
  witnessed,
} from "@fairlead/netfilter";
import {
  add,
  type Builtins,
  chainKey,
  jumpCommands,
  type Programmed,
  readBuiltins,
  rulesByChain,
  type Written,
} from "./apply.ts";
import type { ResolvedOptions } from "./options.ts";
import { CHAINS, type ChainRule, jumps, type RuleTable, TABLES } from "./plan/chains.ts";
import type { RenderContext } from "./plan/context.ts";
import { groupRules } from "./plan/group-rules.ts";
import type { RulesPort } from "./port.ts";
import type { Relays } from "./relay/relays.ts";

/** Renders every group against the ports that its relays have. */
export async function renderAll(
  { groups }: ForwardingPlan,
  context: RenderContext,
  relays: Relays,
  options: ResolvedOptions,
): Promise<Map<string, readonly ChainRule[]>> {
  const rules = new Map<string, readonly ChainRule[]>();
  const yielding = slices(options);
  for (const group of groups.values()) {
    rules.set(group.id, groupRules(group, relays.port, context));
    await yielding();
  }
  return rules;
}

type Rules = ReadonlyMap<string, readonly ChainRule[]>;

/**
 * Writes every chain of this mode anew. Refusals that are new come before nat leads away from them, and those that are
 * old go after it does: nothing that is to be refused gets through in between.
 */
export async function writeAll(
  port: RulesPort,
  rules: Rules,
  context: RenderContext,
  { turn }: ResolvedOptions,
): Promise<Written> {
  const builtins = await readBuiltins(port);
  const present = await port.chains("filter");
  const known = ({ chain }: ChainRule) => present.has(chain);
  const early = [...inTable(rules, "filter")].filter(known).map(add);
  const sections: CommandSource[] = [
    { table: "filter", commands: early },
    { table: "nat", commands: tableCommands("nat", rules, context, builtins) },
    { table: "filter", commands: tableCommands("filter", rules, context, builtins) },
  ];
  const written = { filter: [...inTable(rules, "filter")].length, nat: [...inTable(rules, "nat")].length };
  const write = () => port.restore(payloadText(restoreLines(sections), turn));
  await witnessed(port, write, () => written.filter + written.nat > 0);
  return written;
}

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

function* tableCommands(
  table: RuleTable,
  rules: Rules,
  context: RenderContext,
  builtins: Builtins,
): Generator<Command> {
  for (const chain of CHAINS[table]) yield { kind: "chain", chain };
  for (const rule of inTable(rules, table)) yield add(rule);
  yield* jumpCommands(table, context, builtins);
}

function* inTable(rules: Rules, table: RuleTable): Generator<ChainRule> {
  for (const group of rules.values()) for (const rule of group) if (rule.table === table) yield rule;
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
