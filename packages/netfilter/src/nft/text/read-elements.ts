import { durationOf } from "../expressions/duration.ts";
import type { Verdict } from "../expressions/verdict.ts";
import type { ListedElement } from "../reading/phrases.ts";
import { cut, type Token, TokenReader } from "./tokens.ts";

const SIMPLE: ReadonlySet<string> = new Set(["accept", "drop", "return", "continue"]);

/** What stands between the braces of a set. */
export function readElements(tokens: readonly Token[]): readonly ListedElement[] {
  return cut(
    tokens.filter(({ text, quoted }) => quoted || text !== "\n"),
    ",",
  ).map(readElement);
}

function readElement(tokens: readonly Token[]): ListedElement {
  const reader = new TokenReader(tokens);
  const key: string[] = [];
  const about: { timeout?: number; expires?: number; comment?: string } = {};
  while (!reader.atEnd && reader.peek() !== ":") {
    if (reader.take("timeout")) about.timeout = durationOf(reader.next().text) ?? 0;
    else if (reader.take("expires")) about.expires = durationOf(reader.next().text) ?? 0;
    else if (reader.take("comment")) about.comment = reader.next().text;
    // How often a packet had it is not a part of the element.
    else if (reader.take("counter")) for (let word = 0; word < 4; word += 1) reader.next();
    else key.push(reader.next().text);
  }
  const value = reader.take(":") ? readValue(reader) : undefined;
  return { key: key.join(" "), ...(value !== undefined && { value }), ...about };
}

function readValue(reader: TokenReader): string | Verdict {
  const verdict = readVerdict(reader);
  if (verdict !== undefined) return verdict;
  const words: string[] = [];
  while (!reader.atEnd) words.push(reader.next().text);
  return words.join(" ");
}

/** @returns undefined: it is none, and nothing was read */
export function readVerdict(reader: TokenReader): Verdict | undefined {
  const kind = reader.peek();
  // Looked up in what it may be, one line above.
  if (SIMPLE.has(kind)) return { kind: reader.next().text as "accept" };
  if (reader.take("jump")) return { kind: "jump", chain: reader.next().text };
  return reader.take("goto") ? { kind: "goto", chain: reader.next().text } : undefined;
}
