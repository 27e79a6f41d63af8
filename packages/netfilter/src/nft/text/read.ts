/** Reads tables from nft's text. */

import { durationOf } from "../expressions/kind.ts";
import {
  type BaseChain,
  HOOKS,
  type NftChain,
  type NftFlowtable,
  type NftSet,
  type NftTable,
  SET_FLAGS,
  type SetFlag,
} from "../model.ts";
import { dataTypes, fieldFacts, type ListedElement, NotKnown } from "../phrases.ts";
import { TableBuilder } from "../table-builder.ts";
import { type DataType, isNamedObject, type NftFamily } from "../types.ts";
import { NAMED_PRIORITIES } from "./print.ts";
import { type ReadRule, readElements, readRule } from "./read-rule.ts";
import { cut, HANDLE, type Token, TokenReader, tokensOf } from "./tokens.ts";

/**
 * Reads what `nft list ruleset` or `nft list table` printed, with handles (`-a`) or without.
 *
 * Steps of rules that are not known here are expressions of the kind "unknown". Tables of other families than ip and
 * ip6, sets of types that are not known and other objects are left out; rules that look into such a set are not known
 * either.
 *
 * @throws SyntaxError the listing ends within a table
 */
export function readTables(listing: string): readonly NftTable[] {
  const reader = new TokenReader(tokensOf(listing));
  const tables: NftTable[] = [];
  while (!reader.atEnd) {
    if (!reader.take("table")) {
      reader.next();
      continue;
    }
    const [family, name] = [reader.next().text, reader.next().text];
    // Else a command, of those that come before a table that takes another's place.
    if (!reader.take("{")) continue;
    const block = reader.wholeBlock(`table ${family} ${name}`);
    if (family === "ip" || family === "ip6") tables.push(readTable(family, name, block));
  }
  return tables;
}

interface Block {
  readonly kind: string;
  readonly name: string;
  readonly content: readonly Token[];
}

function readTable(family: NftFamily, name: string, tokens: readonly Token[]): NftTable {
  const { blocks, comment } = blocksOf(tokens);
  const builder = new TableBuilder(family, name, comment);
  for (const { kind, name, content } of blocks) if (kind === "set" || kind === "map") addSet(builder, name, content);
  for (const { kind, name, content } of blocks) {
    if (kind === "flowtable") builder.addFlowtable(readFlowtable(name, content));
  }
  const chains = blocks.filter(({ kind }) => kind === "chain").map(({ name, content }) => readChain(name, content));
  for (const { chain } of chains) builder.addChain(chain);
  for (const { chain, rules } of chains) {
    for (const { phrases, ...rest } of rules) builder.addRule(chain.name, phrases, rest);
  }
  return builder.table();
}

function addSet(builder: TableBuilder, name: string, content: readonly Token[]): void {
  try {
    const { facts, elements } = readSetBlock(name, content);
    builder.addSet(facts, elements);
  } catch (error) {
    // A set of another kind: rules that look into it say so.
    if (!(error instanceof NotKnown)) throw error;
  }
}

/** `chain NAME { … }` and kin, and the comment of the table. */
function blocksOf(tokens: readonly Token[]): { readonly blocks: readonly Block[]; readonly comment?: string } {
  const blocks: Block[] = [];
  let comment: string | undefined;
  for (const line of cut(tokens, "\n", ";")) {
    const reader = new TokenReader(line);
    if (reader.take("comment")) {
      comment = reader.next().text;
      continue;
    }
    const [kind, name] = [reader.next().text, reader.next().text];
    while (!reader.atEnd && !reader.take("{")) reader.next();
    blocks.push({ kind, name, content: reader.block() });
  }
  return { blocks, ...(comment !== undefined && { comment }) };
}

/** A chain and its rules, from what stands between its braces. */
function readChain(
  name: string,
  content: readonly Token[],
): { readonly chain: Omit<NftChain, "rules">; readonly rules: readonly ReadRule[] } {
  const rules: ReadRule[] = [];
  let chain: Omit<NftChain, "rules"> = { name };
  for (const line of cut(content, "\n", ";")) {
    const reader = new TokenReader(line);
    if (reader.take("comment")) chain = { ...chain, comment: reader.next().text };
    else if (reader.take("type")) chain = withBase(chain, readBase(reader));
    else if (reader.take("policy")) chain = withPolicy(chain, reader.next().text);
    else if (!reader.peek().startsWith(HANDLE)) rules.push(readRule(line));
  }
  return { chain, rules };
}

function withBase(chain: Omit<NftChain, "rules">, base: BaseChain | undefined): Omit<NftChain, "rules"> {
  return base === undefined ? chain : { ...chain, base };
}

function withPolicy(chain: Omit<NftChain, "rules">, policy: string): Omit<NftChain, "rules"> {
  return chain.base && policy === "drop" ? { ...chain, base: { ...chain.base, policy } } : chain;
}

/** `filter hook input priority filter + 10`; undefined: a hook that is not known here. */
function readBase(reader: TokenReader): BaseChain | undefined {
  const type = reader.next().text;
  reader.take("hook");
  const name = reader.next().text;
  const hook = HOOKS.find((one) => one === name);
  reader.take("priority");
  const priority = readPriority(reader);
  if (hook === undefined || (type !== "filter" && type !== "nat" && type !== "route")) return undefined;
  return { type, hook, priority, policy: "accept" };
}

/** `filter + 10`, `-300`. */
function readPriority(reader: TokenReader): number {
  const word = reader.next().text;
  const named = NAMED_PRIORITIES.find(([name]) => name === word)?.[1] ?? Number(word);
  if (reader.take("-")) return named - Number(reader.next().text);
  return reader.take("+") ? named + Number(reader.next().text) : named;
}

type Facts = Omit<NftSet, "elements">;

/** A set or a map, from what stands between its braces. */
function readSetBlock(
  name: string,
  content: readonly Token[],
): { readonly facts: Facts; readonly elements: readonly ListedElement[] } {
  let elements: readonly ListedElement[] = [];
  const facts: { -readonly [Fact in keyof Facts]: Facts[Fact] } = { name, key: [], flags: [] };
  for (const line of cut(content, "\n", ";")) {
    const reader = new TokenReader(line);
    if (reader.take("elements", "=", "{")) elements = readElements(reader.block());
    else if (reader.take("type"))
      Object.assign(
        facts,
        readTypes(line.slice(1), (part) => dataTypes([part])[0]),
      );
    else if (reader.take("typeof")) Object.assign(facts, readTypes(line.slice(1), typeOf));
    else if (reader.take("flags")) facts.flags = readFlags(line.slice(1));
    else if (reader.take("size")) facts.size = Number(reader.next().text);
    else if (reader.take("timeout")) facts.timeout = durationOf(reader.next().text) ?? 0;
    else if (reader.take("comment")) facts.comment = reader.next().text;
  }
  if (facts.key.length === 0) throw new NotKnown(name);
  return { facts, elements };
}

/** `ipv4_addr . inet_service : verdict`. */
function readTypes(
  tokens: readonly Token[],
  typeOfPart: (part: string) => DataType | undefined,
): Pick<Facts, "key" | "data" | "objects"> {
  const [key = [], data] = cut(tokens, ":");
  const types = (side: readonly Token[]) =>
    cut(side, ".").map((part) => {
      const words = part.map(({ text }) => text).join(" ");
      const type = typeOfPart(words);
      if (type === undefined) throw new NotKnown(words);
      return type;
    });
  if (data === undefined) return { key: types(key) };
  const objects = data.map(({ text }) => text).join(" ");
  if (isNamedObject(objects)) return { key: types(key), objects };
  return { key: types(key), data: data[0]?.text === "verdict" ? "verdict" : types(data) };
}

/** The type of an expression by which a set is declared. */
function typeOf(part: string): DataType | undefined {
  return part.startsWith("numgen ") ? "integer" : fieldFacts(part)?.type;
}

function readFlags(tokens: readonly Token[]): readonly SetFlag[] {
  return tokens.flatMap(({ text }) => (text !== "map" && Object.hasOwn(SET_FLAGS, text) ? [text as SetFlag] : []));
}

/** A flowtable, from what stands between its braces. */
function readFlowtable(name: string, content: readonly Token[]): NftFlowtable {
  let priority = 0;
  let counter = false;
  let devices: readonly string[] = [];
  for (const line of cut(content, "\n", ";")) {
    const reader = new TokenReader(line);
    if (reader.take("hook", "ingress", "priority")) priority = readPriority(reader);
    else if (reader.take("devices", "=", "{")) devices = cut(reader.block(), ",", "\n").map(nameOf);
    else if (reader.take("counter")) counter = true;
  }
  return { name, priority, devices, ...(counter && { counter }) };
}

function nameOf(tokens: readonly Token[]): string {
  return tokens.map(({ text }) => text).join("");
}
