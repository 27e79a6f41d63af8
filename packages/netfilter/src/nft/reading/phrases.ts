import type { Verdict } from "../expressions/verdict.ts";
import type { NamedObject } from "../named-objects.ts";

/** What a rule compares, looks up or draws. */
export type Operand =
  /** As nft writes it: `ip saddr`, `meta l4proto`, `th dport`, `ct state`, `fib saddr type`. */
  | { readonly kind: "field"; readonly name: string }
  | { readonly kind: "numgen"; readonly modulus: number }
  | { readonly kind: "concat"; readonly parts: readonly Operand[] };

/** An element as a listing has it; parts of keys and values stand with dots between them. */
export interface ListedElement {
  readonly key: string;
  readonly value?: string | Verdict;
  readonly timeout?: number;
  readonly expires?: number;
  readonly comment?: string;
}

/** A set by its name, or the elements of an anonymous one. */
export type ListedSet = string | readonly ListedElement[];

/** Operators as nft writes them; "in": one of these bits; "!": none of them. */
export type Operator = "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "!";

/** What both kinds of listings say with a rule, one step of it. */
export type Phrase =
  | {
      readonly kind: "match";
      readonly left: Operand;
      /** Bits of the left side that count. */
      readonly mask?: number;
      readonly operator: Operator;
      /** A value, several bits, or a set. */
      readonly right: { readonly value: string } | { readonly set: ListedSet };
    }
  | { readonly kind: "vmap"; readonly key: Operand; readonly set: ListedSet }
  | { readonly kind: "verdict"; readonly verdict: Verdict }
  | { readonly kind: "mark"; readonly operator: "|" | "^" | "="; readonly bits: number }
  /** Of the packet or its connection: the bits of `keep` stay, and those of `bits` are set. */
  | { readonly kind: "mark-within"; readonly of: "meta" | "ct"; readonly keep: number; readonly bits: number }
  | { readonly kind: "dnat"; readonly address: string; readonly port?: number }
  | { readonly kind: "dnat-map"; readonly key: Operand; readonly set: ListedSet }
  | { readonly kind: "masquerade"; readonly fullyRandom: boolean }
  | { readonly kind: "reject"; readonly with: "port-unreachable" | "tcp-reset" }
  | {
      readonly kind: "remember";
      readonly operation: "add" | "update" | "delete";
      readonly set: string;
      readonly key: Operand;
      /** Of a map. */
      readonly value?: Operand;
      readonly timeout?: number;
    }
  | { readonly kind: "counter" }
  | { readonly kind: "flow-offload"; readonly flowtable: string }
  /** A named object, or the one that a map has for the key. */
  | {
      readonly kind: "object";
      readonly object: NamedObject;
      readonly to: string | { readonly key: Operand; readonly set: ListedSet };
    }
  | { readonly kind: "unknown"; readonly text: string };
