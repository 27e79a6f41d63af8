import type { Hex, NftSet, NftTable, SetElement } from "@fairlead/netfilter/nft";
import type { Remembered } from "../remembered.ts";
import type { TableName } from "../table-name.ts";
import type { List } from "../walk.ts";
import { intervalsOf } from "./intervals.ts";
import { isKnown, mayBe } from "./registers.ts";

/** What looking a key up comes to; open: it can't be told, and why. */
export type LookupResult =
  | { readonly kind: "found"; readonly value: SetElement["value"] }
  | { readonly kind: "absent" }
  | { readonly kind: "open"; readonly problem: string };

const ABSENT: LookupResult = { kind: "absent" };

/** The sets of a table, ready to be asked. */
export class NftSets {
  readonly #sets: NftTable["sets"];
  readonly name: TableName;
  readonly #intervals = new Map<string, (key: Hex) => SetElement | undefined>();

  constructor({ family, name, sets }: NftTable) {
    this.#sets = sets;
    this.name = `${family} ${name}`;
  }

  get(name: string): NftSet | undefined {
    return this.#sets.get(name);
  }

  /**
   * @param key of which some digits may not be known
   * @param remembered what packets put into the sets or took out of them, the last first
   */
  find(set: NftSet, key: string, remembered: Iterable<Remembered>): LookupResult {
    if (!isKnown(key)) return this.#findAmong(set, key, remembered);
    for (const one of remembered) {
      if (one.table !== this.name || one.set !== set.name || one.key !== key) continue;
      return one.deleted ? ABSENT : { kind: "found", value: one.value };
    }
    const element = this.#element(set, key);
    return element === undefined ? ABSENT : { kind: "found", value: element.value };
  }

  #element(set: NftSet, key: Hex): SetElement | undefined {
    if (!set.flags.includes("interval")) return set.elements.get(key);
    const known = this.#intervals.get(set.name) ?? intervalsOf(set);
    this.#intervals.set(set.name, known);
    return known(key);
  }

  /** No element that the key may be is as good as knowing it. */
  #findAmong(set: NftSet, key: string, remembered: Iterable<Remembered>): LookupResult {
    const candidates = [...remembered].some(
      (one) => one.table === this.name && one.set === set.name && mayBe(key, one.key),
    );
    if (!candidates && set.elements.size === 0) return ABSENT;
    const among = set.flags.includes("interval") || [...set.elements.keys()].some((one) => mayBe(key, one));
    if (!candidates && !among) return ABSENT;
    return { kind: "open", problem: `the key that is looked up in @${set.name} is not known` };
  }
}

/** What was remembered on a walk, the last first, and what had been before it. */
export function* rememberedBy(
  walk: List<Remembered> | undefined,
  before: readonly Remembered[],
): Generator<Remembered> {
  for (let at = walk; at !== undefined; at = at.before) yield at.item;
  yield* before.toReversed();
}
