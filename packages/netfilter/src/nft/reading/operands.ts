import type { Expression } from "../expressions/index.ts";
import type { Register } from "../expressions/registers.ts";
import type { NftSet } from "../model.ts";
import * as statements from "../statements/index.ts";
import { DATA_TYPES, type DataType } from "../types.ts";
import { fieldFacts } from "./fields.ts";
import type { ListedSet, Operand } from "./phrases.ts";
import type { Scope } from "./scope.ts";
import { NotKnown } from "./values.ts";

/** Loads an operand from a register on; `next` is the one behind it. */
export function loadOperand(
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
export function setName(
  scope: Scope,
  set: ListedSet,
  key: readonly DataType[],
  values?: Pick<NftSet, "data" | "objects">,
): string {
  return typeof set === "string" ? scope.set(set).name : scope.anonymous(set, key, values);
}

/** `tcp dport 80` compares the protocol too. */
export function requirement(operand: Operand): readonly Expression[] {
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
