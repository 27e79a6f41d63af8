import type { ListedElement, ListedSet, Operand } from "../reading/phrases.ts";
import { NotKnown } from "../reading/values.ts";
import { isList, isObject, type Json, listOf, member, number, text } from "./json.ts";
import { verdictIn } from "./verdict.ts";

/** @throws NotKnown */
export function operandIn(json: Json | undefined): Operand {
  const parts = member(json, "concat");
  if (parts !== undefined) return { kind: "concat", parts: listOf(parts).map(operandIn) };
  const numgen = member(json, "numgen");
  if (numgen !== undefined) {
    const modulus = number(member(numgen, "mod"));
    if (member(numgen, "mode") !== "random" || modulus === undefined || member(numgen, "offset") !== 0)
      throw notKnown(json);
    return { kind: "numgen", modulus };
  }
  const name = fieldName(json);
  if (name === undefined) throw notKnown(json);
  return { kind: "field", name };
}

/** As nft writes it in text. */
function fieldName(json: Json | undefined): string | undefined {
  const [protocol, field] = [text(member(json, "payload", "protocol")), text(member(json, "payload", "field"))];
  if (protocol !== undefined && field !== undefined) return `${protocol} ${field}`;
  const meta = text(member(json, "meta", "key"));
  if (meta !== undefined) return `meta ${meta}`;
  const ct = text(member(json, "ct", "key"));
  if (ct !== undefined) return `ct ${ct}`;
  const [flag, ...others] = listOf(member(json, "fib", "flags"));
  if (member(json, "fib", "result") !== "type" || others.length > 0) return undefined;
  return `fib ${text(flag)} type`;
}

/** `"@name"`, or the elements of an anonymous set; undefined: neither. */
export function setIn(json: Json | undefined): ListedSet | undefined {
  if (typeof json === "string") return json.startsWith("@") ? json.slice(1) : undefined;
  const elements = member(json, "set");
  return elements === undefined ? undefined : listOf(elements).map(elementIn);
}

/** An element of a set, or a pair of a map. */
export function elementIn(json: Json): ListedElement {
  if (!isList(json)) return keyIn(json);
  const [key, value] = json;
  return { ...keyIn(key), value: verdictIn(value) ?? valueText(value) };
}

/** Times are in seconds. */
function keyIn(json: Json | undefined): ListedElement {
  const about = member(json, "elem");
  if (about === undefined) return { key: valueText(json) };
  const milliseconds = (name: string) => {
    const seconds = number(member(about, name));
    return seconds === undefined ? {} : { [name]: seconds * 1000 };
  };
  const comment = text(member(about, "comment"));
  return {
    key: valueText(member(about, "val")),
    ...milliseconds("timeout"),
    ...milliseconds("expires"),
    ...(comment !== undefined && { comment }),
  };
}

/**
 * A value as nft writes it in text.
 *
 * @throws NotKnown
 */
export function valueText(json: Json | undefined): string {
  if (typeof json === "string" || typeof json === "number") return String(json);
  const prefix = member(json, "prefix");
  if (prefix !== undefined) return `${valueText(member(prefix, "addr"))}/${valueText(member(prefix, "len"))}`;
  const range = member(json, "range");
  if (range !== undefined) return listOf(range).map(valueText).join("-");
  const parts = member(json, "concat");
  if (parts !== undefined) return listOf(parts).map(valueText).join(" . ");
  throw notKnown(json);
}

export function notKnown(json: Json | undefined): NotKnown {
  return new NotKnown(isObject(json) || isList(json) ? JSON.stringify(json) : String(json));
}
