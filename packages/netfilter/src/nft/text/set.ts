import { durationText } from "../expressions/duration.ts";
import { verdictText } from "../expressions/verdict.ts";
import { bytesOf, type Hex, hexOf } from "../hex.ts";
import type { NftSet, SetElement } from "../model.ts";
import { DATA_TYPES, valueText } from "../types.ts";
import { quoted } from "./quote.ts";

/** An anonymous set as it stands in a rule: `{ 10.0.0.0/8, 192.0.2.1 }`, `{ 0 : 10.0.0.1 . 80, … }`. */
export function setText(set: NftSet): string {
  return `{ ${elementTexts(set).join(", ")} }`;
}

/** The elements as nft prints them, those of intervals as prefixes and ranges. */
export function elementTexts(set: NftSet): readonly string[] {
  if (set.flags.includes("interval")) return intervalTexts(set);
  return Array.from(set.elements.values(), (element) => elementText(set, valueText(set.key, element.key), element));
}

function elementText({ data }: NftSet, key: string, element: SetElement): string {
  const { value, object, timeout, expires, comment } = element;
  const words = [key];
  if (timeout !== undefined) words.push(`timeout ${durationText(timeout)}`);
  if (expires !== undefined) words.push(`expires ${durationText(expires)}`);
  if (comment !== undefined) words.push(`comment ${quoted(comment)}`);
  const said = words.join(" ");
  if (object !== undefined) return `${said} : ${quoted(object)}`;
  if (value === undefined || data === undefined) return said;
  return `${said} : ${typeof value === "string" ? valueText(data === "verdict" ? [] : data, value) : verdictText(value)}`;
}

/** An interval is where it begins and the first value behind it, which is not in it. */
function intervalTexts(set: NftSet): readonly string[] {
  const [type] = set.key;
  if (type === undefined) return [];
  const sorted = [...set.elements.values()].sort(inOrder);
  return sorted.flatMap((element, at) => {
    if (element.intervalEnd) return [];
    const end = sorted.slice(at + 1).find(({ intervalEnd }) => intervalEnd)?.key;
    const last = end === undefined ? "f".repeat(element.key.length) : before(end);
    return [elementText(set, intervalText(element.key, last, DATA_TYPES[type].text), element)];
  });
}

/** Where one interval ends and the next one begins, the end comes first. */
function inOrder(one: SetElement, other: SetElement): number {
  if (one.key !== other.key) return one.key < other.key ? -1 : 1;
  return (one.intervalEnd ? 0 : 1) - (other.intervalEnd ? 0 : 1);
}

function intervalText(first: Hex, last: Hex, text: (hex: Hex) => string): string {
  if (first === last) return text(first);
  const [low, high] = [BigInt(`0x${first}`), BigInt(`0x${last}`)];
  const size = high - low + 1n;
  const isPrefix = (size & (size - 1n)) === 0n && low % size === 0n;
  return isPrefix
    ? `${text(first)}/${4 * first.length - (size.toString(2).length - 1)}`
    : `${text(first)}-${text(last)}`;
}

/** The value before one that is not zero. */
function before(hex: Hex): Hex {
  const bytes = bytesOf(hex);
  for (let at = bytes.length - 1; at >= 0; at -= 1) {
    const byte = bytes[at] ?? 0;
    bytes[at] = byte - 1;
    if (byte > 0) break;
  }
  return hexOf(bytes);
}
