import type { Expression } from "../expressions/index.ts";
import type { NftFamily } from "../family.ts";
import type { NftChain, NftFlowtable, NftRule, NftSet, NftTable } from "../model.ts";
import type { DataType } from "../types.ts";
import { compile } from "./compile.ts";
import { elementsOf, hasIntervals } from "./elements.ts";
import type { ListedElement, Phrase } from "./phrases.ts";
import type { Scope } from "./scope.ts";
import { NotKnown } from "./values.ts";

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
