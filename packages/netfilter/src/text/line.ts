import { RuleParseError } from "../rule/errors.ts";
import { Problem } from "../rule/problem.ts";
import type { IPFamily, Rule, Table } from "../rule/rule.ts";
import { parseRuleWords } from "./parse-rule.ts";
import { tokenize } from "./tokenize.ts";

const TABLES: ReadonlySet<string> = new Set<Table>(["filter", "nat", "mangle", "raw", "security"]);

/**
 * Runs the reader of one line and says where its problem stands.
 *
 * @param line number of the line, from 1
 * @throws RuleParseError with the line, for what the reader cannot read; other errors as they are
 */
export function atLine<Result>(line: number, text: string, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (error instanceof Problem) throw new RuleParseError(line, text, error.message);
    throw error;
  }
}

/**
 * The table of a `*nat` line.
 *
 * @throws Problem for a table that iptables does not have; `atLine` makes a RuleParseError of it
 */
export function parseTableLine(line: string): Table {
  const name = line.slice(1).trimEnd();
  if (!isTable(name)) throw new Problem(`unknown table "${name}"`);
  return name;
}

function isTable(name: string): name is Table {
  return TABLES.has(name);
}

/**
 * Name and policy of a `:INPUT ACCEPT [0:0]` line.
 *
 * @throws Problem without a name, or with another policy; `atLine` makes a RuleParseError of it
 */
export function parseChainLine(line: string): { readonly name: string; readonly policy?: "ACCEPT" | "DROP" } {
  // As nearly all of them are.
  const plain = /^:(\S+) - \[/.exec(line)?.[1];
  if (plain !== undefined) return { name: plain };
  const [name = "", policy = "-"] = line.slice(1).trim().split(/\s+/);
  if (name === "") throw new Problem("a chain needs a name");
  return { name, ...policyField(policy) };
}

export function policyField(policy: string): { readonly policy?: "ACCEPT" | "DROP" } {
  if (policy === "-") return {};
  if (policy !== "ACCEPT" && policy !== "DROP") throw new Problem(`policy "${policy}" is neither ACCEPT, DROP nor -`);
  return { policy };
}

/** The line without the counters `[1:2] ` that -c puts before a rule. */
export function withoutCounters(line: string): string {
  return line.startsWith("[") ? line.replace(/^\[\d+:\d+\]\s*/, "") : line;
}

/** The chain that an `-A CHAIN …` line names. */
export function chainOf(line: string): string {
  const end = line.indexOf(" ", 3);
  return end < 0 ? line.slice(3) : line.slice(3, end);
}

/** The rule of a line; `from`: the first character after the chain. */
export function parseRuleText(line: string, from: number, family: IPFamily): Rule {
  return parseRuleWords(tokenize(line, from), 0, family);
}

/** The same of a rule that may be another program's: an unreadable one is its text, as a match of kind "unreadable". */
export function readRule(line: string, from: number, family: IPFamily): Rule {
  try {
    return parseRuleText(line, from, family);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { matches: [{ kind: "unreadable", text: line.slice(from).trimStart() }] };
  }
}
