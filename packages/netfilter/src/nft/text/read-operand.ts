import { fieldFacts } from "../reading/fields.ts";
import type { ListedSet, Operand } from "../reading/phrases.ts";
import { NotKnown } from "../reading/values.ts";
import { readElements } from "./read-elements.ts";
import type { TokenReader } from "./tokens.ts";

/** @throws NotKnown */
export function readOperand(reader: TokenReader): Operand {
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
export function readSet(reader: TokenReader): ListedSet | undefined {
  if (reader.peek().startsWith("@")) return reader.next().text.slice(1);
  return reader.take("{") ? readElements(reader.block()) : undefined;
}
