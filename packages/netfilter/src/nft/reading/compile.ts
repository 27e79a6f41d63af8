import type { Expression } from "../expressions/index.ts";
import { PORT_UNREACHABLE } from "../expressions/reject.ts";
import type { NftFamily } from "../family.ts";
import * as statements from "../statements/index.ts";
import { lengthOf } from "../types.ts";
import { matchExpressions } from "./match.ts";
import { loadOperand, setName } from "./operands.ts";
import type { ListedSet, Phrase } from "./phrases.ts";
import type { Scope } from "./scope.ts";

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
