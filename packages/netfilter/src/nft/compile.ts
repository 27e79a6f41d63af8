/** From what a rule says (phrases) to the expressions that the kernel runs. */

import { PORT_UNREACHABLE } from "./expressions/actions.ts";
import type { Register } from "./expressions/kind.ts";
import type { Expression } from "./expressions/table.ts";
import type { NftSet } from "./model.ts";
import {
  type FieldFacts,
  fieldFacts,
  type ListedSet,
  NotKnown,
  type Operand,
  type Phrase,
  valueHex,
} from "./phrases.ts";
import * as statements from "./statements.ts";
import { DATA_TYPES, type DataType, type Hex, hexOf, hostHex, lengthOf, type NftFamily } from "./types.ts";

/**
 * The expressions of one step of a rule.
 *
 * @throws NotKnown for a field, a value or a set that is not known here
 */
export function compile(phrase: Phrase, scope: Scope): readonly Expression[] {
  switch (phrase.kind) {
    case "match":
      return matchExpressions(phrase, scope);
    case "vmap": {
      const { expressions, types } = loadOperand(phrase.key);
      const set = setName(scope, phrase.set, types, { data: "verdict" });
      return [...expressions, { kind: "lookup", set, from: 0, to: "verdict" }];
    }
    case "verdict":
      return statements.verdict(phrase.verdict);
    case "mark":
      return MARKS[phrase.operator](phrase.bits);
    case "mark-within": {
      const { of, keep, bits } = phrase;
      const set = of === "ct" ? statements.setConnectionMark : statements.setMarkWithin;
      return set(bits, (~keep | bits) >>> 0);
    }
    case "dnat":
      return translated(phrase.address, phrase.port, scope.family);
    case "dnat-map":
      return translatedByMap(phrase, scope);
    case "masquerade":
      return [{ kind: "masq", fullyRandom: phrase.fullyRandom }];
    case "reject":
      return phrase.with === "tcp-reset"
        ? [{ kind: "reject", with: "tcp-reset", code: 0 }]
        : [{ kind: "reject", with: "port-unreachable", code: PORT_UNREACHABLE[scope.family] }];
    case "remember":
      return remembering(phrase, scope);
    case "object": {
      const { object, to } = phrase;
      if (typeof to === "string") return [{ kind: "objref", object, name: to }];
      const { expressions, types } = loadOperand(to.key);
      return [...expressions, { kind: "objref", map: setName(scope, to.set, types, { objects: object }), from: 0 }];
    }
    case "flow-offload":
      return [phrase];
    case "counter":
      return [{ kind: "counter" }];
    default:
      return [{ kind: "unknown", text: phrase.text }];
  }
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

export interface Scope {
  readonly family: NftFamily;
  /** @throws NotKnown when there is none of that name */
  set(name: string): Omit<NftSet, "elements">;
  /** Makes an anonymous set of these types, and gives its name. */
  anonymous(listed: ListedSet & object, key: readonly DataType[], values?: Pick<NftSet, "data" | "objects">): string;
}

const MARKS = { "|": statements.setMark, "^": statements.flipMark, "=": statements.replaceMark } as const;

function remembering(
  { operation, set, key, value, timeout }: Extract<Phrase, { readonly kind: "remember" }>,
  scope: Scope,
): readonly Expression[] {
  scope.set(set);
  const { expressions, next } = loadOperand(key);
  const mapped = value && loadOperand(value, next);
  const rest = { ...(mapped && { value: next }), ...(timeout !== undefined && { timeout }) };
  return [...expressions, ...(mapped?.expressions ?? []), { kind: "dynset", set, operation, from: 0, ...rest }];
}

const ADDRESS_OF = { ip: "ipv4_addr", ip6: "ipv6_addr" } as const;

function translated(address: string, port: number | undefined, family: NftFamily): readonly Expression[] {
  const all = statements.dnatTo(family, address, port ?? 0);
  const [first] = all;
  return port !== undefined || first === undefined ? all : [first, { kind: "nat", family, address: 0 }];
}

/** The map gives an address, or an address and a port. */
function translatedByMap(
  { key, set }: Extract<Phrase, { readonly kind: "dnat-map" }>,
  scope: Scope,
): readonly Expression[] {
  const { expressions, types } = loadOperand(key);
  const address = ADDRESS_OF[scope.family];
  const withPort = typeof set === "string" ? scope.set(set).data?.length === 2 : mapsToPorts(set);
  const name = setName(scope, set, types, { data: withPort ? [address, "inet_service"] : [address] });
  const port = lengthOf([address]) / 4;
  return [
    ...expressions,
    { kind: "lookup", set: name, from: 0, to: 0 },
    { kind: "nat", family: scope.family, address: 0, ...(withPort && { port }) },
  ];
}

function mapsToPorts(set: ListedSet & object): boolean {
  return set.some(({ value }) => typeof value === "string" && value.includes(" . "));
}

type Match = Extract<Phrase, { readonly kind: "match" }>;

/** What compares: a field with a value, with a prefix, with bits, or with a set. */
function matchExpressions(match: Match, scope: Scope): readonly Expression[] {
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

/** Loads an operand from a register on; `next` is the one behind it. */
function loadOperand(
  operand: Operand,
  from: Register = 0,
): {
  readonly expressions: readonly Expression[];
  readonly types: readonly DataType[];
  readonly next: Register;
} {
  const parts = operand.kind === "concat" ? operand.parts : [operand];
  const types = parts.map(typeOf);
  // Where the protocol is a part of the key, nothing is compared before.
  const withProtocol = parts.some((part) => part.kind === "field" && part.name === "meta l4proto");
  const before = withProtocol ? [] : parts.flatMap(requirement);
  let to = from;
  const loads = parts.map((part, at) => {
    const expression = load(part, to);
    to += Math.ceil(DATA_TYPES[types[at] ?? "integer"].length / 4);
    return expression;
  });
  return { expressions: [...before, ...loads], types, next: to };
}

/** @param values that an anonymous map has */
function setName(
  scope: Scope,
  set: ListedSet,
  key: readonly DataType[],
  values?: Pick<NftSet, "data" | "objects">,
): string {
  return typeof set === "string" ? scope.set(set).name : scope.anonymous(set, key, values);
}

/** `tcp dport 80` compares the protocol too. */
function requirement(operand: Operand): readonly Expression[] {
  const protocol = operand.kind === "field" ? fieldFacts(operand.name)?.protocol : undefined;
  return protocol === undefined ? [] : statements.protocolIs(protocol);
}

function load(part: Operand, to: Register): Expression {
  if (part.kind === "numgen") return { kind: "numgen", modulus: part.modulus, to };
  const facts = part.kind === "field" ? fieldFacts(part.name) : undefined;
  if (facts === undefined) throw new NotKnown(part.kind === "field" ? part.name : "a concatenation in another");
  return facts.load(to);
}

function typeOf(part: Operand): DataType {
  if (part.kind === "numgen") return "integer";
  const facts = part.kind === "field" ? fieldFacts(part.name) : undefined;
  if (facts === undefined) throw new NotKnown(part.kind === "field" ? part.name : "a concatenation in another");
  return facts.type;
}
