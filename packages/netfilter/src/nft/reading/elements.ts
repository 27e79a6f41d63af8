import { parseCIDRLeniently } from "@fairlead/base";
import type { Verdict } from "../expressions/verdict.ts";
import type { Hex } from "../hex.ts";
import { elementKey, lastOfPrefix, nextHex } from "../intervals.ts";
import type { NftSet, SetElement } from "../model.ts";
import type { DataType } from "../types.ts";
import type { ListedElement } from "./phrases.ts";
import { NotKnown, valueHex } from "./values.ts";

type Facts = Pick<NftSet, "key" | "data" | "objects" | "flags">;

/**
 * The elements of a set, by their keys.
 *
 * @throws NotKnown for an element that is no value of the set's types
 */
export function elementsOf(facts: Facts, listed: readonly ListedElement[]): NftSet["elements"] {
  const { key: types, flags } = facts;
  const elements = new Map<string, SetElement>();
  for (const { key, value, ...rest } of listed) {
    const mapped = value === undefined ? {} : mappedTo(facts, value);
    const [first, behind] = flags.includes("interval") ? intervalOf(types, key) : [valueHex(types, key), undefined];
    elements.set(first, { key: first, ...mapped, ...rest });
    if (behind === undefined) continue;
    const end = { key: behind, intervalEnd: true } as const;
    elements.set(elementKey(end), end);
  }
  return elements;
}

/** Whether an anonymous set of these elements is one of intervals. */
export function hasIntervals(listed: readonly ListedElement[]): boolean {
  return listed.some(({ key }) => key.includes("/") || /^[^\s-]+-[^\s-]+$/.test(key));
}

function mappedTo({ data, objects }: Facts, value: string | Verdict): Pick<SetElement, "value" | "object"> {
  return objects !== undefined && typeof value === "string" ? { object: value } : { value: mappedValue(data, value) };
}

function mappedValue(data: NftSet["data"], value: string | Verdict): Hex | Verdict {
  if (data === undefined || (data === "verdict") !== (typeof value === "object")) throw new NotKnown(String(value));
  return typeof value === "object" || data === "verdict" ? value : valueHex(data, value);
}

/** The first value, and the first one behind the last; undefined where there is none. */
function intervalOf(types: readonly DataType[], text: string): readonly [first: Hex, behind: Hex | undefined] {
  // Intervals of concatenations are another kind of set.
  if (types.length !== 1) throw new NotKnown(text);
  const [first, last] = firstAndLast(types, text);
  return [first, nextHex(last)];
}

function firstAndLast(types: readonly DataType[], text: string): readonly [first: Hex, last: Hex] {
  const [address = "", length] = text.split("/");
  if (length !== undefined) {
    if (parseCIDRLeniently(text) === undefined) throw new NotKnown(text);
    const first = valueHex(types, address);
    return [first, lastOfPrefix(first, Number(length))];
  }
  const [low = "", high = low] = text.split("-");
  return [valueHex(types, low), valueHex(types, high)];
}
