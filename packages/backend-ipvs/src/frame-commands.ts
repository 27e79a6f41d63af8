import { type Command, type CommandSource, type Rule, repairJumps, ruleEquals } from "@fairlead/netfilter";
import { frameChains } from "./plan/frame.ts";
import { type ChainRules, type FrameFacts, type FrameTable, TABLES } from "./plan/frame-facts.ts";
import { JUMPS } from "./plan/jumps.ts";

/** The rules of the built-in chains that lead to ours. */
export type BuiltinRules = (table: FrameTable, chain: string) => readonly Rule[];

/** Every chain of this mode written anew. With the built-in chains' rules, the jumps to them too. */
export function frameSections(facts: FrameFacts, builtin?: BuiltinRules): readonly CommandSource[] {
  const chains = frameChains(facts);
  return TABLES.map((table) => ({ table, commands: tableCommands(table, chains[table], builtin) }));
}

function* tableCommands(
  table: FrameTable,
  chains: readonly ChainRules[],
  builtin: BuiltinRules | undefined,
): Generator<Command> {
  for (const { chain } of chains) yield { kind: "chain", chain };
  for (const { chain, rules } of chains) {
    for (const rule of rules) yield { kind: "append", chain, rule };
  }
  if (builtin === undefined) return;
  for (const { table: of, chain, rules, unwanted } of JUMPS) {
    if (of !== table) continue;
    const isUnwanted = (rule: Rule) => unwanted.some((one) => ruleEquals(one, rule));
    yield* repairJumps(chain, { first: rules, isUnwanted }, builtin(table, chain));
  }
}

/** How many rules a table has in the frame. */
export function countRules(facts: FrameFacts, table: FrameTable): number {
  return frameChains(facts)[table].reduce((sum, { rules }) => sum + rules.length, 0);
}
