/** Tables and rules in the words of nft. */

import { bracketed, bytesText } from "@fairlead/base";
import {
  durationText,
  type Printer,
  type Register,
  type SetWords,
  type Value,
  verdictText,
} from "../expressions/kind.ts";
import { kindOf } from "../expressions/table.ts";
import type { BaseChain, NftChain, NftFlowtable, NftRule, NftSet, NftTable, SetElement } from "../model.ts";
import {
  bytesOf,
  ctStateText,
  ctStatusText,
  DATA_TYPES,
  type Hex,
  hexOf,
  hostNumber,
  lengthOf,
  type NftFamily,
  tcpFlagsText,
  valueText,
} from "../types.ts";

/**
 * A table as `nft list table` prints it, which `nft -f` takes where the table is not there: sets first, then chains,
 * each in its order. Elements stand one in a line.
 */
export function tableText(table: NftTable): string {
  return `${[...tableLines(table)].join("\n")}\n`;
}

/** The same by lines, for tables of a hundred thousand elements. */
export function* tableLines(table: NftTable): Generator<string, void, void> {
  yield `table ${table.family} ${table.name} {`;
  if (table.comment !== undefined) yield `\tcomment ${quoted(table.comment)}`;
  for (const set of table.sets.values()) {
    if (set.flags.includes("anonymous")) continue;
    yield* setLines(set);
    yield "";
  }
  for (const flowtable of table.flowtables?.values() ?? []) {
    yield* flowtableLines(flowtable);
    yield "";
  }
  let first = true;
  for (const chain of table.chains.values()) {
    if (!first) yield "";
    first = false;
    yield* chainLines(chain, table);
  }
  yield "}";
}

/** nft names priorities of the IP families near to where they have a name at that hook (std_prios). */
export const NAMED_PRIORITIES: readonly (readonly [
  name: string,
  priority: number,
  hooks: readonly BaseChain["hook"][] | undefined,
])[] = [
  ["raw", -300, undefined],
  ["mangle", -150, undefined],
  ["dstnat", -100, ["prerouting"]],
  ["filter", 0, undefined],
  ["security", 50, undefined],
  ["srcnat", 100, ["postrouting"]],
];

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

function* setLines(set: NftSet): Generator<string, void, void> {
  yield `\t${set.data === undefined && set.objects === undefined ? "set" : "map"} ${set.name} {`;
  yield `\t\t${typeText(set)}`;
  if (set.size !== undefined) yield `\t\tsize ${set.size}`;
  const flags = set.flags.filter((flag) => flag !== "anonymous");
  if (flags.length > 0) yield `\t\tflags ${flags.join(",")}`;
  if (set.timeout !== undefined) yield `\t\ttimeout ${durationText(set.timeout)}`;
  if (set.comment !== undefined) yield `\t\tcomment ${quoted(set.comment)}`;
  const elements = elementTexts(set);
  for (const [at, element] of elements.entries()) {
    const begin = at === 0 ? "\t\telements = { " : "\t\t\t     ";
    yield `${begin}${element}${at + 1 === elements.length ? " }" : ","}`;
  }
  yield "\t}";
}

function* flowtableLines({ name, priority, devices, counter }: NftFlowtable): Generator<string, void, void> {
  yield `\tflowtable ${name} {`;
  yield `\t\thook ingress priority ${priorityText(priority, "ingress")}`;
  // Names that nft would not take as they are stand in quotation marks, as it prints them.
  if (devices.length > 0) yield `\t\tdevices = { ${devices.map(deviceText).join(", ")} }`;
  if (counter) yield "\t\tcounter";
  yield "\t}";
}

function deviceText(name: string): string {
  return /^[a-zA-Z][\w/\\.-]*$/.test(name) ? name : quoted(name);
}

/** What numgen gives has no type of a name: the key is written by an expression that has it. */
function typeText({ key, data, objects }: NftSet): string {
  if (objects !== undefined) return `type ${key.join(" . ")} : ${objects}`;
  const value = data === undefined ? "" : ` : ${data === "verdict" ? "verdict" : data.join(" . ")}`;
  return key.includes("integer") || key.includes("random")
    ? `typeof ${key.map((type) => TYPEOF[type]).join(" . ")}${typeofValue(key, data)}`
    : `type ${key.join(" . ")}${value}`;
}

/**
 * A rule that translates to a `tcp dport` is for TCP only to `nft -f`. It takes `th dport` where the rule looks up a
 * port of the packet; elsewhere the rule has to ask for the protocol itself. (What nft keeps with the agent's maps is
 * `tcp dport` all the same: 1.0.6 refuses rules for tables with the other.)
 */
function typeofValue(key: NftSet["key"], data: NftSet["data"]): string {
  if (data === undefined) return "";
  const port = key.includes("inet_service") ? { inet_service: "th dport" } : {};
  const names = { ...TYPEOF, ...port };
  return ` : ${data === "verdict" ? "verdict" : data.map((type) => names[type]).join(" . ")}`;
}

const TYPEOF: Readonly<Record<keyof typeof DATA_TYPES, string>> = {
  ipv4_addr: "ip daddr",
  ipv6_addr: "ip6 daddr",
  inet_proto: "meta l4proto",
  inet_service: "tcp dport",
  tcp_flag: "tcp flags",
  mark: "meta mark",
  integer: "numgen random mod 65536",
  random: "meta random",
  ct_state: "ct state",
  ifname: "iifname",
};

function* chainLines({ name, base, comment, rules }: NftChain, table: NftTable): Generator<string, void, void> {
  yield `\tchain ${name} {`;
  if (comment !== undefined) yield `\t\tcomment ${quoted(comment)}`;
  if (base !== undefined) yield `\t\t${baseText(base)}`;
  for (const rule of rules) yield `\t\t${ruleText(rule, table)}`;
  yield "\t}";
}

function baseText({ type, hook, priority, policy }: BaseChain): string {
  return `type ${type} hook ${hook} priority ${priorityText(priority, hook)}; policy ${policy};`;
}

/** How far from a named priority nft still prints a priority by that name. */
const NEAR = 10;

function priorityText(priority: number, hook: BaseChain["hook"] | "ingress"): string {
  const near = NAMED_PRIORITIES.find(
    ([, value, hooks]) =>
      Math.abs(priority - value) <= NEAR && (hooks === undefined || (hook !== "ingress" && hooks.includes(hook))),
  );
  if (near === undefined) return String(priority);
  const [name, value] = near;
  if (priority === value) return name;
  return priority < value ? `${name} - ${value - priority}` : `${name} + ${priority - value}`;
}

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

/** An anonymous set as it stands in a rule: `{ 10.0.0.0/8, 192.0.2.1 }`, `{ 0 : 10.0.0.1 . 80, … }`. */
function setText(set: NftSet): string {
  return `{ ${elementTexts(set).join(", ")} }`;
}

/** The elements as nft prints them, those of intervals as prefixes and ranges. */
function elementTexts(set: NftSet): readonly string[] {
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
    const { text } = DATA_TYPES[type];
    const interval = type === "random" ? `${text(element.key)}-${text(last)}` : intervalText(element.key, last, text);
    return [elementText(set, interval, element)];
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

/**
 * A comment as nft writes it. It has no escapes: a quotation mark within ends the text, so there is none in what we
 * write, and in what others wrote it stands as it is.
 */
function quoted(comment: string): string {
  return `"${comment}"`;
}
