import type { NftFamily } from "../family.ts";
import type { NftTable } from "../model.ts";
import { TableBuilder } from "../reading/table-builder.ts";
import { NotKnown } from "../reading/values.ts";
import { readChain } from "./read-chain.ts";
import { readFlowtable } from "./read-flowtable.ts";
import { readSetBlock } from "./read-set.ts";
import { cut, type Token, TokenReader, tokensOf } from "./tokens.ts";

/**
 * Reads what `nft list ruleset` or `nft list table` printed, with handles (`-a`) or without.
 *
 * Steps of rules that are not known here are expressions of the kind "unknown". Tables of other families than ip and
 * ip6, sets of types that are not known and other objects are left out; rules that look into such a set are not known
 * either.
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
    const block = reader.block();
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
