import { Problem } from "../rule/options.ts";
import type { ChainState, IPFamily, Rule, Table, TableState } from "../rule/rule.ts";
import {
  atLine,
  chainOf,
  goesOn,
  isOpen,
  linesOf,
  parseRuleText,
  policyField,
  readRule,
  withoutCounters,
} from "../text/lines.ts";

/** How a listing is read. */
export interface ListOptions {
  /** Decides the defaults that the text leaves out. Default: IPv4. */
  readonly family?: IPFamily;
  /**
   * What can't be read stops nothing: a rule is kept as its text (a match of kind "unreadable"), a line that begins
   * nothing belongs to the rule before it. Default: it is an error.
   */
  readonly lenient?: boolean;
}

/**
 * Reads what `iptables -t TABLE -S [CHAIN [NUMBER]]` prints, with or without -v. With a NUMBER iptables prints the rule
 * only: its chain then stands here without a policy.
 *
 * @throws RuleParseError with the line
 */
export function parseList(
  input: string | Iterable<string>,
  table: Table,
  { family = "IPv4", lenient = false }: ListOptions = {},
): TableState {
  const chains: Chains = new Map();
  const read = lenient ? readRule : parseRuleText;
  for (const { line, text } of entriesOf(input, lenient)) {
    if (text === "" || text.startsWith("#")) continue;
    atLine(line, text, () => readEntry(withoutCounters(text), chains, (rule, from) => read(rule, from, family)));
  }
  return { table, chains };
}

/** The lines of a listing, those of a rule together, with the number of the first one. */
function* entriesOf(input: string | Iterable<string>, lenient: boolean): Generator<{ line: number; text: string }> {
  let held: { line: number; text: string } | undefined;
  let number = 0;
  for (const line of linesOf(input)) {
    number += 1;
    if (held?.text.startsWith("-A ") && (lenient ? goesOn(held.text, line) : isOpen(held.text)))
      held.text += `\n${line}`;
    else {
      if (held !== undefined) yield held;
      held = { line: number, text: line };
    }
  }
  if (held !== undefined) yield held;
}

/**
 * The chains that `iptables -S` prints, with the texts of their rules without `-A CHAIN `. Reads leniently, and no
 * rule.
 */
export function listedTexts(input: string): ReadonlyMap<string, readonly string[]> {
  const texts = new Map<string, string[]>();
  for (const { text } of entriesOf(input, true)) {
    const entry = withoutCounters(text);
    if (!/^-[ANP] /.test(entry)) continue;
    const name = chainOf(entry);
    const rules = texts.get(name) ?? [];
    texts.set(name, rules);
    if (entry.startsWith("-A ")) rules.push(entry.slice(4 + name.length));
  }
  return texts;
}

type Chains = Map<string, ChainState & { readonly rules: Rule[] }>;

function readEntry(line: string, chains: Chains, read: (rule: string, from: number) => Rule): void {
  const name = chainOf(line);
  if (line.startsWith("-A ")) {
    const chain = chains.get(name) ?? { name, rules: [] };
    chains.set(name, chain);
    chain.rules.push(read(line, 3 + name.length));
  } else if (line.startsWith("-N ")) chains.set(name, { name, rules: [] });
  else if (line.startsWith("-P ")) {
    const policy =
      line
        .slice(3 + name.length)
        .trim()
        .split(" ", 1)[0] ?? "";
    chains.set(name, { name, ...policyField(policy), rules: [] });
  } else throw new Problem("neither a policy, a chain nor a rule");
}
