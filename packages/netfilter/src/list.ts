import { atLine, chainOf, parseRuleText, policyField, withoutCounters } from "./line.ts";
import { linesOf } from "./lines.ts";
import { Problem } from "./problem.ts";
import type { ChainState, IPFamily, Rule, Table, TableState } from "./rule.ts";

/**
 * Reads what `iptables -t TABLE -S [CHAIN [NUMBER]]` prints, with or without -v. With a NUMBER iptables prints the rule
 * alone: its chain then stands here without a policy.
 *
 * @throws RuleParseError with the line
 */
export function parseList(
  input: string | Iterable<string>,
  table: Table,
  options: { readonly family?: IPFamily } = {},
): TableState {
  const chains = new Map<string, ChainState & { readonly rules: Rule[] }>();
  let number = 0;
  for (const line of linesOf(input)) {
    number += 1;
    if (line !== "" && !line.startsWith("#")) {
      atLine(number, line, () => readLine(withoutCounters(line), chains, options.family ?? "IPv4"));
    }
  }
  return { table, chains };
}

function readLine(line: string, chains: Map<string, ChainState & { readonly rules: Rule[] }>, family: IPFamily): void {
  const name = chainOf(line);
  if (line.startsWith("-A ")) {
    const chain = chains.get(name) ?? { name, rules: [] };
    chains.set(name, chain);
    chain.rules.push(parseRuleText(line, 3 + name.length, family));
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
