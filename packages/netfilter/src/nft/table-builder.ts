/** Puts a table together from what is read of its text. */

import { parseCIDRLeniently } from "@fairlead/base";
import { compile, type Scope } from "./compile.ts";
import type { Verdict } from "./expressions/kind.ts";
import type { Expression } from "./expressions/table.ts";
import {
  elementKey,
  lastOfPrefix,
  type NftChain,
  type NftFlowtable,
  type NftRule,
  type NftSet,
  type NftTable,
  nextHex,
  type SetElement,
} from "./model.ts";
import { type ListedElement, NotKnown, type Phrase, valueHex } from "./phrases.ts";
import type { DataType, Hex, NftFamily } from "./types.ts";

/** Puts a table together from what a listing says of it, in the listing's order. */
export class TableBuilder implements Scope {
  readonly family: NftFamily;
  readonly #name: string;
  readonly #comment: string | undefined;
  readonly #chains = new Map<string, { chain: Omit<NftChain, "rules">; rules: NftRule[] }>();
  readonly #sets = new Map<string, NftSet>();
  readonly #flowtables = new Map<string, NftFlowtable>();
  #anonymous = 0;

  constructor(family: NftFamily, name: string, comment?: string) {
    this.family = family;
    this.#name = name;
    this.#comment = comment;
  }

  /** @throws NotKnown when an element does not have the set's type: the set is not there then */
  addSet(facts: Omit<NftSet, "elements">, listed: readonly ListedElement[]): void {
    this.#sets.set(facts.name, { ...facts, elements: elementsOf(facts, listed) });
  }

  addChain(chain: Omit<NftChain, "rules">): void {
    this.#chains.set(chain.name, { chain, rules: [] });
  }

  addFlowtable(flowtable: NftFlowtable): void {
    this.#flowtables.set(flowtable.name, flowtable);
  }

  /** A step with something that is not known is kept as its text. */
  addRule(chain: string, phrases: readonly ReadPhrase[], rest: Pick<NftRule, "comment" | "handle"> = {}): void {
    const expressions = phrases.flatMap((one) => this.#compile(one));
    this.#chains.get(chain)?.rules.push({ expressions, ...rest });
  }

  set(name: string): Omit<NftSet, "elements"> {
    const set = this.#sets.get(name);
    if (set === undefined) throw new NotKnown(`@${name}`);
    return set;
  }

  anonymous(
    listed: readonly ListedElement[],
    key: readonly DataType[],
    values: Pick<NftSet, "data" | "objects"> = {},
  ): string {
    const kind = values.objects !== undefined ? "__objmap" : values.data !== undefined ? "__map" : "__set";
    const name = `${kind}${this.#anonymous}`;
    const flags = ["anonymous", "constant", ...(hasIntervals(listed) ? (["interval"] as const) : [])] as const;
    this.addSet({ name, key, ...values, flags }, listed);
    this.#anonymous += 1;
    return name;
  }

  table(): NftTable {
    const chains = Array.from(this.#chains, ([name, { chain, rules }]) => [name, { ...chain, rules }] as const);
    return {
      family: this.family,
      name: this.#name,
      ...(this.#comment !== undefined && { comment: this.#comment }),
      chains: new Map(chains),
      sets: this.#sets,
      ...(this.#flowtables.size > 0 && { flowtables: this.#flowtables }),
    };
  }

  #compile({ phrase, text }: ReadPhrase): readonly Expression[] {
    try {
      return compile(phrase, this);
    } catch (error) {
      if (!(error instanceof NotKnown)) throw error;
      return [{ kind: "unknown", text }];
    }
  }
}

/** A step of a rule, and how the listing has it. */
export interface ReadPhrase {
  readonly phrase: Phrase;
  readonly text: string;
}

type Facts = Pick<NftSet, "key" | "data" | "objects" | "flags">;

function elementsOf(facts: Facts, listed: readonly ListedElement[]): NftSet["elements"] {
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
function hasIntervals(listed: readonly ListedElement[]): boolean {
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
