import type { Expression } from "../expressions/index.ts";
import type { Hex } from "../hex.ts";
import { hexOf, hostHex } from "../hex.ts";
import * as statements from "../statements/index.ts";
import { type FieldFacts, fieldFacts } from "./fields.ts";
import { loadOperand, requirement, setName } from "./operands.ts";
import type { Operand, Phrase } from "./phrases.ts";
import type { Scope } from "./scope.ts";
import { NotKnown, valueHex } from "./values.ts";

type Match = Extract<Phrase, { readonly kind: "match" }>;

/** What compares: a field with a value, with a prefix, with bits, or with a set. */
export function matchExpressions(match: Match, scope: Scope): readonly Expression[] {
  const { left, operator, right } = match;
  if ("set" in right) {
    if (operator !== "==" && operator !== "!=" && operator !== "in") throw new NotKnown(`${operator} and a set`);
    const { expressions, types } = loadOperand(left);
    const set = setName(scope, right.set, types);
    return [...expressions, { kind: "lookup", set, from: 0, ...(operator === "!=" && { inverted: true as const }) }];
  }
  const facts = left.kind === "field" ? fieldFacts(left.name) : undefined;
  if (facts === undefined) throw new NotKnown(right.value);
  return [...requirement(left), ...compared(match, facts, right.value, scope)];
}

function compared(match: Match, facts: FieldFacts, text: string, scope: Scope): readonly Expression[] {
  const { operator, mask } = match;
  const whole = facts.bits === "flags" && operator !== "in" && operator !== "!";
  if (facts.bits !== undefined && !whole) return anyBit(facts, operator, bitsOf(facts, text));
  if (operator === "in" || operator === "!") throw new NotKnown(`${operator} ${text}`);
  if (text.includes("-") && facts.type !== "ifname") throw new NotKnown(text);
  if (mask !== undefined) return masked(facts, operator, mask, text);
  if (text.includes("/")) return prefix(match, text, scope);
  const word = facts.words?.[text];
  const value = word === undefined ? namedValue(facts, text) : numberHex(facts, word);
  return [facts.load(0), { kind: "cmp", operator, from: 0, value }];
}

/**
 * The bits that a mask has, in numbers or in words.
 *
 * @throws NotKnown
 */
export function maskOf(left: Operand, text: string): number {
  const facts = left.kind === "field" ? fieldFacts(left.name) : undefined;
  const bits = facts?.bits === "flags" ? bitsOf(facts, text) : Number(text);
  if (Number.isNaN(bits)) throw new NotKnown(`& ${text}`);
  return bits;
}

function prefix({ left, operator }: Match, text: string, { family }: Scope): readonly Expression[] {
  const field = left.kind === "field" ? left.name.split(" ")[1] : undefined;
  if ((field !== "saddr" && field !== "daddr") || (operator !== "==" && operator !== "!=")) throw new NotKnown(text);
  return statements.addressIn(family, field, text, operator);
}

/** A name that ends in a star is the begin of one. */
function namedValue({ type }: FieldFacts, text: string): Hex {
  if (type === "ifname" && text.endsWith("*")) return hexOf(new TextEncoder().encode(text.slice(0, -1)));
  return valueHex([type], text);
}

function masked(
  facts: FieldFacts,
  operator: "==" | "!=" | "<" | "<=" | ">" | ">=",
  mask: number,
  text: string,
): readonly Expression[] {
  const { load, type } = facts;
  if (type !== "mark" && type !== "tcp_flag") throw new NotKnown(`& ${mask}`);
  return [
    load(0),
    { kind: "bitwise", from: 0, to: 0, mask: numberHex(facts, mask), xor: numberHex(facts, 0) },
    { kind: "cmp", operator, from: 0, value: valueHex([type], text) },
  ];
}

function anyBit(facts: FieldFacts, operator: Match["operator"], bits: number): readonly Expression[] {
  if (operator !== "in" && operator !== "!") throw new NotKnown(operator);
  return [
    facts.load(0),
    { kind: "bitwise", from: 0, to: 0, mask: numberHex(facts, bits), xor: numberHex(facts, 0) },
    { kind: "cmp", operator: operator === "in" ? "!=" : "==", from: 0, value: numberHex(facts, 0) },
  ];
}

function numberHex({ bytes }: FieldFacts, number: number): Hex {
  return bytes === 1 ? hexOf([number]) : hostHex(number);
}

function bitsOf({ words = {} }: FieldFacts, text: string): number {
  return text.split(",").reduce((bits, word) => {
    const bit = words[word];
    if (bit === undefined) throw new NotKnown(word);
    return bits | bit;
  }, 0);
}
