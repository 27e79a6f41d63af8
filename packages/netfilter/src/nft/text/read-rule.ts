/** Reads a rule from nft's text. */

import { maskOf } from "../compile.ts";
import { durationOf, type Verdict } from "../expressions/kind.ts";
import {
  fieldFacts,
  type ListedElement,
  type ListedSet,
  NotKnown,
  type Operand,
  type Operator,
  type Phrase,
} from "../phrases.ts";
import type { ReadPhrase } from "../table-builder.ts";
import type { NamedObject } from "../types.ts";
import { cut, HANDLE, skipUnknown, type Token, TokenReader, tokensText } from "./tokens.ts";

export interface ReadRule {
  readonly phrases: readonly ReadPhrase[];
  readonly comment?: string;
  readonly handle?: bigint;
}

/** One line of a chain. What is not known is a step that says so; the steps behind it are read all the same. */
export function readRule(tokens: readonly Token[]): ReadRule {
  const { body, ...about } = withoutRemarks(tokens);
  const phrases: ReadPhrase[] = [];
  for (let at = 0; at < body.length; ) {
    const { read, length } = readStep(body.slice(at));
    phrases.push(read);
    at += length;
  }
  return { phrases, ...about };
}

/** What stands between the braces of a set. */
export function readElements(tokens: readonly Token[]): readonly ListedElement[] {
  return cut(
    tokens.filter(({ text, quoted }) => quoted || text !== "\n"),
    ",",
  ).map(readElement);
}

function readStep(tokens: readonly Token[]): { readonly read: ReadPhrase; readonly length: number } {
  const reader = new TokenReader(tokens);
  try {
    const phrase = readPhrase(reader);
    return { read: { phrase, text: tokensText(reader.since(0)) }, length: reader.at };
  } catch (error) {
    if (!(error instanceof NotKnown)) throw error;
    const behind = new TokenReader(tokens);
    skipUnknown(behind);
    const text = tokensText(behind.since(0));
    return { read: { phrase: { kind: "unknown", text }, text }, length: behind.at };
  }
}

/** Comment and handle stand at the end. */
function withoutRemarks(tokens: readonly Token[]) {
  const body = [...tokens];
  const handle = !body.at(-1)?.quoted && body.at(-1)?.text.startsWith(HANDLE) ? body.pop()?.text : undefined;
  const isComment = body.at(-1)?.quoted && body.at(-2)?.text === "comment" && !body.at(-2)?.quoted;
  const comment = isComment ? body.pop()?.text : undefined;
  if (comment !== undefined) body.pop();
  return {
    body,
    ...(comment !== undefined && { comment }),
    ...(handle !== undefined && { handle: BigInt(handle.slice(HANDLE.length)) }),
  };
}

function readPhrase(reader: TokenReader): Phrase {
  const verdict = readVerdict(reader);
  if (verdict !== undefined) return { kind: "verdict", verdict };
  const action = ACTIONS.find(({ words }) => words.every((word, ahead) => reader.peek(ahead) === word));
  if (action !== undefined) {
    reader.take(...action.words);
    return action.read(reader);
  }
  const left = readOperand(reader);
  if (!reader.take("vmap")) return readMatch(reader, left);
  const set = readSet(reader);
  if (set === undefined) throw new NotKnown("vmap without a map");
  return { kind: "vmap", key: left, set };
}

/** `counter name "c"`, `ct helper set "h"`, `quota name ip saddr map @m`. */
const OBJECT_WORDS: readonly (readonly [object: NamedObject, words: readonly string[]])[] = [
  ...(["counter", "quota", "limit", "synproxy"] as const).map((object) => [object, [object, "name"]] as const),
  ...(["helper", "timeout", "expectation"] as const).map((what) => [`ct ${what}`, ["ct", what, "set"]] as const),
  ["secmark", ["meta", "secmark", "set"]],
];

function readObject(reader: TokenReader, object: NamedObject): Phrase {
  if (reader.atQuoted) return { kind: "object", object, to: reader.next().text };
  const key = readOperand(reader);
  const set = reader.take("map") ? readSet(reader) : undefined;
  if (set === undefined) throw new NotKnown(reader.peek());
  return { kind: "object", object, to: { key, set } };
}

const SIMPLE: ReadonlySet<string> = new Set(["accept", "drop", "return", "continue"]);

const ACTIONS: readonly { readonly words: readonly string[]; readonly read: (reader: TokenReader) => Phrase }[] = [
  ...OBJECT_WORDS.map(([object, words]) => ({ words, read: (reader: TokenReader) => readObject(reader, object) })),
  { words: ["counter"], read: readCounter },
  { words: ["flow", "add"], read: readOffload },
  // As nft wrote it until 0.9.1.
  { words: ["flow", "offload"], read: readOffload },
  { words: ["masquerade", "fully-random"], read: () => ({ kind: "masquerade", fullyRandom: true }) },
  { words: ["masquerade"], read: readMasquerade },
  { words: ["reject"], read: readReject },
  { words: ["dnat"], read: readDnat },
  ...(["meta", "ct"] as const).map((of) => ({
    words: [of, "mark", "set"],
    read: (reader: TokenReader) => readMark(reader, of),
  })),
  ...(["add", "update", "delete"] as const).map((operation) => ({
    words: [operation],
    read: (reader: TokenReader) => readRemember(reader, operation),
  })),
];

function readCounter(reader: TokenReader): Phrase {
  if (reader.take("packets")) for (let word = 0; word < 3; word += 1) reader.next();
  return { kind: "counter" };
}

function readOffload(reader: TokenReader): Phrase {
  const name = reader.next().text;
  if (!name.startsWith("@")) throw new NotKnown(name);
  return { kind: "flow-offload", flowtable: name.slice(1) };
}

/** Other flags, or ports to which it translates. */
function readMasquerade(reader: TokenReader): Phrase {
  if (!reader.atEnd) throw new NotKnown(reader.peek());
  return { kind: "masquerade", fullyRandom: false };
}

function readReject(reader: TokenReader): Phrase {
  if (!reader.take("with")) return { kind: "reject", with: "port-unreachable" };
  if (reader.take("tcp", "reset")) return { kind: "reject", with: "tcp-reset" };
  const isPort = reader.take("icmp", "port-unreachable") || reader.take("icmpv6", "port-unreachable");
  if (!isPort) throw new NotKnown(reader.peek());
  return { kind: "reject", with: "port-unreachable" };
}

/** `dnat to ADDRESS:PORT`, `dnat ip to KEY map MAP`. */
function readDnat(reader: TokenReader): Phrase {
  if (reader.take("ip") || reader.take("ip6")) reader.take("addr", ".", "port");
  if (!reader.take("to")) throw new NotKnown(reader.peek());
  const target = /^(?:\[([\da-f:.]+)\]|([\d.]+)|([\da-f:.]+:[\da-f:.]*))(?::(\d+))?$/i.exec(reader.peek());
  if (target !== null) {
    reader.next();
    const [, bracketed, plain, bare, port] = target;
    const address = bracketed ?? plain ?? bare ?? "";
    return { kind: "dnat", address, ...(port !== undefined && { port: Number(port) }) };
  }
  const key = readOperand(reader);
  const set = reader.take("map") ? readSet(reader) : undefined;
  if (set === undefined) throw new NotKnown(reader.peek());
  return { kind: "dnat-map", key, set };
}

/** `meta mark set meta mark | 0x4000`, `meta mark set 0x4000`, `ct mark set ct mark & 0xffffcfff | 0x1000`. */
function readMark(reader: TokenReader, of: "meta" | "ct"): Phrase {
  const isChanged = reader.take(of, "mark");
  const keep = isChanged && reader.take("&") ? numberIn(reader) : undefined;
  const operator = isChanged ? reader.next().text : "=";
  const bits = numberIn(reader);
  if (keep !== undefined && operator === "|") return { kind: "mark-within", of, keep, bits };
  const isKnown = operator === "|" || operator === "^" || operator === "=";
  if (of === "ct" || keep !== undefined || !isKnown) throw new NotKnown(operator);
  return { kind: "mark", operator, bits };
}

/** @throws NotKnown */
function numberIn(reader: TokenReader): number {
  const { text } = reader.next();
  if (text === "" || Number.isNaN(Number(text))) throw new NotKnown(text);
  return Number(text);
}

/** `update @set { ip saddr timeout 5m }`, `add @map { ip saddr : meta mark }`. */
function readRemember(reader: TokenReader, operation: "add" | "update" | "delete"): Phrase {
  const set = reader.next().text;
  if (!set.startsWith("@") || !reader.take("{")) throw new NotKnown(set);
  const inner = new TokenReader(reader.block());
  const key = readOperand(inner);
  const timeout = inner.take("timeout") ? durationOf(inner.next().text) : undefined;
  const value = inner.take(":") ? readOperand(inner) : undefined;
  if (!inner.atEnd) throw new NotKnown(inner.peek());
  const rest = { ...(value && { value }), ...(timeout !== undefined && { timeout }) };
  return { kind: "remember", operation, set: set.slice(1), key, ...rest };
}

const OPERATORS: ReadonlySet<string> = new Set(["==", "!=", "<", "<=", ">", ">=", "!"]);

function readMatch(reader: TokenReader, left: Operand): Phrase {
  const masked = reader.take("&") ? maskOf(left, reader.next().text) : undefined;
  // Looked up in what it may be.
  const written = OPERATORS.has(reader.peek()) ? (reader.next().text as Operator) : undefined;
  const set = readSet(reader);
  if (set !== undefined) return { kind: "match", left, operator: written ?? "==", right: { set } };
  const value = readList(reader);
  // `tcp flags syn / syn,ack`.
  const mask = reader.take("/") ? maskOf(left, readList(reader)) : masked;
  const operator = written ?? (mask === undefined && hasBits(left) ? "in" : "==");
  return { kind: "match", left, operator, right: { value }, ...(mask !== undefined && { mask }) };
}

/** @throws NotKnown */
function readList(reader: TokenReader): string {
  const list = [reader.next().text];
  while (reader.take(",")) list.push(reader.next().text);
  if (list[0] === "") throw new NotKnown("nothing to compare with");
  return list.join(",");
}

function hasBits(operand: Operand): boolean {
  return operand.kind === "field" && fieldFacts(operand.name)?.bits !== undefined;
}

/** @throws NotKnown */
function readOperand(reader: TokenReader): Operand {
  const parts = [readPart(reader)];
  while (reader.take(".")) parts.push(readPart(reader));
  const [only] = parts;
  return parts.length === 1 && only !== undefined ? only : { kind: "concat", parts };
}

function readPart(reader: TokenReader): Operand {
  if (reader.take("numgen", "random", "mod")) {
    const modulus = Number(reader.next().text);
    if (reader.take("offset") && reader.next().text !== "0") throw new NotKnown("numgen with an offset");
    return { kind: "numgen", modulus };
  }
  for (const length of [4, 3, 2, 1]) {
    const name = Array.from({ length }, (_, ahead) => reader.peek(ahead)).join(" ");
    if (fieldFacts(name) === undefined) continue;
    reader.take(...name.split(" "));
    return { kind: "field", name };
  }
  throw new NotKnown(reader.peek());
}

/** `@name`, or elements in braces; undefined: neither, and nothing was read. */
function readSet(reader: TokenReader): ListedSet | undefined {
  if (reader.peek().startsWith("@")) return reader.next().text.slice(1);
  return reader.take("{") ? readElements(reader.block()) : undefined;
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
function readVerdict(reader: TokenReader): Verdict | undefined {
  const kind = reader.peek();
  // Looked up in what it may be, one line above.
  if (SIMPLE.has(kind)) return { kind: reader.next().text as "accept" };
  if (reader.take("jump")) return { kind: "jump", chain: reader.next().text };
  return reader.take("goto") ? { kind: "goto", chain: reader.next().text } : undefined;
}
