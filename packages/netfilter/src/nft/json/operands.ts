import { isObject, numberOf, stringOf, valueAt } from "@fairlead/base";
import type { ListedElement, ListedSet, Operand } from "../reading/phrases.ts";
import { NotKnown } from "../reading/values.ts";
import { listOf } from "./list.ts";
import { verdictIn } from "./verdict.ts";

/** @throws NotKnown */
export function operandIn(json: unknown): Operand {
  const parts = valueAt(json, "concat");
  if (parts !== undefined) return { kind: "concat", parts: listOf(parts).map(operandIn) };
  const numgen = valueAt(json, "numgen");
  if (numgen !== undefined) {
    const modulus = numberOf(valueAt(numgen, "mod"));
    if (valueAt(numgen, "mode") !== "random" || modulus === undefined || valueAt(numgen, "offset") !== 0)
      throw notKnown(json);
    return { kind: "numgen", modulus };
  }
  const name = fieldName(json);
  if (name === undefined) throw notKnown(json);
  return { kind: "field", name };
}

/** As nft writes it in text. */
function fieldName(json: unknown): string | undefined {
  const [protocol, field] = [
    stringOf(valueAt(json, "payload", "protocol")),
    stringOf(valueAt(json, "payload", "field")),
  ];
  if (protocol !== undefined && field !== undefined) return `${protocol} ${field}`;
  const meta = stringOf(valueAt(json, "meta", "key"));
  if (meta !== undefined) return `meta ${meta}`;
  const ct = stringOf(valueAt(json, "ct", "key"));
  const direction = stringOf(valueAt(json, "ct", "dir"));
  if (ct !== undefined) return direction === undefined ? `ct ${ct}` : `ct ${direction} ${ct}`;
  const [flag, ...others] = listOf(valueAt(json, "fib", "flags"));
  if (valueAt(json, "fib", "result") !== "type" || others.length > 0) return undefined;
  return `fib ${stringOf(flag)} type`;
}

/** `"@name"`, or the elements of an anonymous set; undefined: neither. */
export function setIn(json: unknown): ListedSet | undefined {
  if (typeof json === "string") return json.startsWith("@") ? json.slice(1) : undefined;
  const elements = valueAt(json, "set");
  return elements === undefined ? undefined : listOf(elements).map(elementIn);
}

/** An element of a set, or a pair of a map. */
export function elementIn(json: unknown): ListedElement {
  if (!Array.isArray(json)) return keyIn(json);
  const [key, value] = json;
  return { ...keyIn(key), value: verdictIn(value) ?? valueText(value) };
}

/** Times are in seconds. */
function keyIn(json: unknown): ListedElement {
  const about = valueAt(json, "elem");
  if (about === undefined) return { key: valueText(json) };
  const milliseconds = (name: string) => {
    const seconds = numberOf(valueAt(about, name));
    return seconds === undefined ? {} : { [name]: seconds * 1000 };
  };
  const comment = stringOf(valueAt(about, "comment"));
  return {
    key: valueText(valueAt(about, "val")),
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
export function valueText(json: unknown): string {
  if (typeof json === "string" || typeof json === "number") return String(json);
  const prefix = valueAt(json, "prefix");
  if (prefix !== undefined) return `${valueText(valueAt(prefix, "addr"))}/${valueText(valueAt(prefix, "len"))}`;
  const range = valueAt(json, "range");
  if (range !== undefined) return listOf(range).map(valueText).join("-");
  const parts = valueAt(json, "concat");
  if (parts !== undefined) return listOf(parts).map(valueText).join(" . ");
  throw notKnown(json);
}

export function notKnown(json: unknown): NotKnown {
  return new NotKnown(isObject(json) || Array.isArray(json) ? JSON.stringify(json) : String(json));
}
