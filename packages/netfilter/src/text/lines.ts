/** Lines of iptables' texts: where rules end, and what a line of a table, a chain or a rule says. */

import { Problem } from "../rule/options.ts";
import type { IPFamily, Rule, Table } from "../rule/rule.ts";
import { RuleParseError } from "../rule/values.ts";
import { parseRuleWords, tokenize } from "./parse-rule.ts";

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

/**
 * Cuts pieces of text into lines, whatever the pieces' borders. A line ends with a line feed, or with a carriage return
 * and a line feed. A last line without an end counts too.
 */
export function* linesOf(input: string | Iterable<string>): Generator<string, void, undefined> {
  const feed = new LineFeed();
  for (const chunk of typeof input === "string" ? [input] : input) yield* feed.push(chunk);
  yield* feed.end();
}

/** Instead of a place: the text ends within a comment. */
export const OPEN = -1;

/** How iptables-save begins a comment that it quotes. Nothing else that it quotes can have a line end in it. */
const OPENING = '--comment "';

/**
 * Characters after which a quote that was not closed has not opened a comment: the kernel stores 255 bytes, of which
 * each may be escaped.
 * It is part of a name then that the tools print without quotes, such as an interface's.
 */
const LONGEST = 512;

/**
 * Finds the ends of rules in a listing: a rule ends with its line, unless that is within a comment, which may have line
 * ends of its own. Asked for place after place, it goes through a text once.
 */
export class RuleEnds {
  readonly #text: string;
  /**
   * Where the next quoted comment begins, from the place on that was last asked for; behind the text: there is none.
   */
  #comment = -1;
  /** How many lines the rule takes whose end was found last. */
  lines = 1;

  constructor(text: string) {
    this.#text = text;
  }

  /**
   * @param from a place in the rule; not before that of the last call
   * @returns the place after the rule's last line end; without one that of the text's end; OPEN: the text ends within a
   * comment
   */
  after(from: number): number {
    const text = this.#text;
    let end = nextLine(text, from);
    this.lines = 1;
    for (let at = from; ; ) {
      if (this.#comment < at) this.#comment = commentFrom(text, at);
      if (this.#comment >= end) return end;
      const start = this.#comment + OPENING.length;
      const close = closingQuote(text, start);
      if (close === OPEN && text.length - start <= LONGEST) return OPEN;
      for (; close >= end; end = nextLine(text, end)) this.lines += 1;
      at = start;
    }
  }
}

/** What a line of `iptables-save` or `iptables -S` begins with. */
const BEGINNING = /^(?:-[ANP] |\[\d+:\d+\] |[:*#]|COMMIT$|$)/;

/**
 * Whether a line of a listing goes on with the rule in the lines before it: that ends within a comment, or this line
 * begins nothing, as after a line end in a name, which the tools print without quotes.
 */
export function goesOn(rule: string, line: string): boolean {
  return isOpen(rule) || !BEGINNING.test(line);
}

/** Whether a rule's text ends within a comment. */
export function isOpen(rule: string): boolean {
  return new RuleEnds(rule).after(0) === OPEN;
}

export function nextLine(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end < 0 ? text.length : end + 1;
}

const TABLES: ReadonlySet<string> = new Set<Table>(["filter", "nat", "mangle", "raw", "security"]);

function isTable(name: string): name is Table {
  return TABLES.has(name);
}

class LineFeed {
  #rest = "";

  *push(chunk: string): Generator<string, void, undefined> {
    let start = 0;
    for (let end = chunk.indexOf("\n"); end >= 0; end = chunk.indexOf("\n", start)) {
      yield trimReturn(this.#rest + chunk.slice(start, end));
      this.#rest = "";
      start = end + 1;
    }
    this.#rest += chunk.slice(start);
  }

  *end(): Generator<string, void, undefined> {
    if (this.#rest !== "") yield trimReturn(this.#rest);
    this.#rest = "";
  }
}

function trimReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

function commentFrom(text: string, from: number): number {
  const found = text.indexOf(OPENING, from);
  return found < 0 ? Number.POSITIVE_INFINITY : found;
}

/** OPEN: there is none, or only behind more characters than a comment has. */
function closingQuote(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at >= 0 && at - from <= LONGEST; at = text.indexOf('"', at + 1)) {
    if (!isEscaped(text, at, from)) return at;
  }
  return OPEN;
}

function isEscaped(text: string, at: number, from: number): boolean {
  let backslashes = 0;
  while (at - backslashes > from && text.charCodeAt(at - backslashes - 1) === 0x5c) backslashes += 1;
  return backslashes % 2 === 1;
}
