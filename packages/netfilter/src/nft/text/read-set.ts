import { durationOf } from "../expressions/duration.ts";
import { type NftSet, SET_FLAGS, type SetFlag } from "../model.ts";
import { isNamedObject } from "../named-objects.ts";
import { fieldFacts } from "../reading/fields.ts";
import type { ListedElement } from "../reading/phrases.ts";
import { dataTypes, NotKnown } from "../reading/values.ts";
import type { DataType } from "../types.ts";
import { readElements } from "./read-elements.ts";
import { cut, type Token, TokenReader } from "./tokens.ts";

type Facts = Omit<NftSet, "elements">;

/**
 * A set or a map, from what stands between its braces.
 *
 * @throws NotKnown when it has types that are not known here
 */
export function readSetBlock(
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
