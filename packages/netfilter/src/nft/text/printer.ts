import { bracketed, bytesText } from "@fairlead/base";
import { kindOf } from "../expressions/index.ts";
import type { Printer, SetWords, Value } from "../expressions/printer.ts";
import type { Register } from "../expressions/registers.ts";
import type { NftFamily } from "../family.ts";
import { bytesOf, type Hex, hostNumber } from "../hex.ts";
import type { NftRule, NftTable } from "../model.ts";
import { DATA_TYPES, lengthOf } from "../types.ts";
import { ctStateText, ctStatusText, tcpFlagsText } from "../words.ts";
import { quoted } from "./quote.ts";
import { setText } from "./set.ts";

/**
 * Prints one rule, as `nft list` does: follows what each register holds, and says what is compared, looked up and done.
 */
class RulePrinter implements Printer {
  readonly family: NftFamily;
  readonly #sets: NftTable["sets"];
  readonly #words: string[] = [];
  readonly #registers = new Map<Register, Value & { readonly loaded: number }>();

  constructor({ family, sets }: Pick<NftTable, "family" | "sets">) {
    this.family = family;
    this.#sets = sets;
  }

  text(): string {
    return this.#words.join(" ");
  }

  say(words: string): void {
    this.#words.push(words);
  }

  load(to: Register, length: number, value: Value): void {
    this.#registers.set(to, { ...value, loaded: length });
  }

  constant(to: Register, value: Hex): void {
    this.load(to, value.length / 2, { text: `0x${value}`, constant: value });
  }

  value(from: Register, length: number): Value {
    const parts: (Value & { readonly loaded: number })[] = [];
    for (let at = from; (at - from) * 4 < length; ) {
      const part = this.#registers.get(at);
      if (part === undefined) break;
      parts.push(part);
      at += Math.max(1, Math.ceil(part.loaded / 4));
    }
    const [only] = parts;
    return parts.length === 1 && only !== undefined ? only : { text: parts.map(({ text }) => text).join(" . ") };
  }

  set(name: string): SetWords {
    const set = this.#sets.get(name);
    if (set === undefined) return { text: `@${name}`, keyLength: 64, valueLength: 64 };
    const data = set.data === undefined || set.data === "verdict" ? [] : set.data;
    const text = set.flags.includes("anonymous") ? setText(set) : `@${name}`;
    const { objects } = set;
    return { text, keyLength: lengthOf(set.key), valueLength: lengthOf(data), ...(objects && { objects }) };
  }

  compare(from: Register, operator: string, value: Hex): void {
    const held = this.value(from, value.length / 2);
    const not = operator === "==" && !held.computed ? "" : `${operator} `;
    const { bits, masked } = held;
    if (bits !== undefined && masked !== undefined && hostNumber(value) === 0) {
      this.say(`${held.text} ${operator === "!=" ? "" : "! "}${BITS_TEXTS[bits](hostNumber(masked))}`);
    } else if (bits === "flags") {
      const of = masked === undefined ? "" : ` / ${tcpFlagsText(hostNumber(masked))}`;
      this.say(`${held.text} ${of === "" ? `${operator} ` : not}${tcpFlagsText(hostNumber(value))}${of}`);
    } else this.say(`${held.text} ${not}${constantText(held, value)}`);
  }

  mask(from: Register, to: Register, mask: Hex, xor: Hex): void {
    const held = this.value(from, mask.length / 2);
    this.load(to, mask.length / 2, maskedValue(held, mask, xor));
  }

  translate(family: NftFamily, address: Register, port: Register | undefined): void {
    const to = this.value(address, 1);
    const behind = port === undefined ? undefined : this.value(port, 1);
    if (to.constant === undefined) this.say(`dnat ${port === undefined ? "" : `${family} `}to ${to.text}`);
    else if (behind?.constant === undefined) this.say(`dnat to ${bytesText(bytesOf(to.constant))}`);
    else this.say(`dnat to ${bracketed(bytesText(bytesOf(to.constant)))}:${Number.parseInt(behind.constant, 16)}`);
  }
}

/**
 * A rule as `nft list` prints it.
 *
 * @param table that the rule is in: its sets of no name are printed where they are used
 */
export function ruleText({ expressions, comment }: NftRule, table: Pick<NftTable, "family" | "sets">): string {
  const printer = new RulePrinter(table);
  for (const expression of expressions) kindOf(expression).print(expression, printer);
  return comment === undefined ? printer.text() : `${printer.text()} comment ${quoted(comment)}`;
}

const BITS_TEXTS = { state: ctStateText, status: ctStatusText, flags: tcpFlagsText } as const;

function constantText({ type, words, length, masked }: Value, value: Hex): string {
  const word = words && Object.entries(words).find(([, number]) => number === hostNumber(value))?.[0];
  if (word !== undefined) return word;
  if (type === undefined) return `0x${value}`;
  if (type === "ifname" && value.length < 2 * DATA_TYPES.ifname.length)
    return `"${DATA_TYPES.ifname.text(value).slice(1, -1)}*"`;
  const whole = length ?? DATA_TYPES[type].length;
  const bits = masked === undefined ? 4 * value.length : prefixOf(masked);
  if (bits === undefined || bits === 8 * whole || whole < 4) return DATA_TYPES[type].text(value);
  return type === "ipv4_addr" || type === "ipv6_addr"
    ? `${DATA_TYPES[type].text(value.padEnd(2 * whole, "0"))}/${bits}`
    : DATA_TYPES[type].text(value);
}

function maskedValue(held: Value, mask: Hex, xor: Hex): Value {
  const none = /^0*$/.test(xor);
  const isAddress = held.type === "ipv4_addr" || held.type === "ipv6_addr";
  if (none && (held.bits !== undefined || (isAddress && prefixOf(mask) !== undefined)))
    return { ...held, masked: mask };
  if (none) return { ...held, text: `${held.text} & ${numberText(mask)}`, computed: true };
  if (/^f*$/.test(mask)) return { ...held, text: `${held.text} ^ ${numberText(xor)}` };
  if (hostNumber(mask) === ~hostNumber(xor) >>> 0) return { ...held, text: `${held.text} | ${numberText(xor)}` };
  return { ...held, text: `${held.text} & ${numberText(mask)} ^ ${numberText(xor)}` };
}

const numberText = (hex: Hex): string => DATA_TYPES.mark.text(hex);

/** The length of the prefix that a mask keeps; undefined where it is not one. */
function prefixOf(mask: Hex): number | undefined {
  const bits = Array.from(bytesOf(mask), (byte) => byte.toString(2).padStart(8, "0")).join("");
  const [, ones = ""] = /^(1*)0*$/.exec(bits) ?? [];
  return ones.length > 0 || /^0*$/.test(bits) ? ones.length : undefined;
}
