import { parseAddressLeniently } from "@fairlead/base";
import { type Claim, claimText } from "../claims.ts";
import { afterKey, chosenText, type JsonItems, jsonItems } from "./json-items.ts";
import { isOddAddress } from "./odd-address.ts";

/** Something that an object may have, as its text shows it. */
export type Trait = { readonly kind: "text"; readonly text: string } | Claim;

export function traitKey(trait: Trait): string {
  return trait.kind === "text" ? JSON.stringify(trait.text) : claimText(trait);
}

const NODE_PORT = '"nodePort"';

/** The objects of one JSON text, found by what they hold before they are read. */
export class ObjectTexts {
  /** Places of what was looked for before. */
  readonly #found = new Map<string, readonly number[]>();
  readonly #bytes: Buffer;
  readonly #items: JsonItems;
  /** Where something is written in another way than it is looked for. */
  readonly #unusual: readonly number[];
  /** Where addresses stand that are not written as they are looked for, by how they would be. */
  readonly #oddAddresses: ReadonlyMap<string, readonly number[]>;

  /** @returns undefined: the text is no array or list of objects */
  static of(content: Uint8Array): ObjectTexts | undefined {
    const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
    const unusual: number[] = [];
    const odd: number[] = [];
    const items = jsonItems(bytes, {
      unusual: (at) => unusual.push(at),
      string: (from, to) => {
        if (isOddAddress(bytes, from + 1, to)) odd.push(from);
      },
    });
    return items && new ObjectTexts(bytes, items, unusual, addressesAt(bytes, odd));
  }

  private constructor(
    bytes: Buffer,
    items: JsonItems,
    unusual: readonly number[],
    oddAddresses: ReadonlyMap<string, readonly number[]>,
  ) {
    this.#bytes = bytes;
    this.#items = items;
    this.#unusual = unusual;
    this.#oddAddresses = oddAddresses;
  }

  /**
   * The objects, by their place, that may have one of these; more than do. Ascending: of two of one name the last one
   * counts.
   */
  having(traits: Iterable<Trait>): readonly number[] {
    const places = [...this.#unusual, ...[...traits].flatMap((trait) => this.#knownPlacesOf(trait))];
    return [...new Set(places.flatMap((at) => this.#itemAt(at)))].sort((a, b) => a - b);
  }

  /** The text with these objects only. */
  choose(items: Iterable<number>): Uint8Array {
    return chosenText(this.#bytes, this.#items, items);
  }

  #knownPlacesOf(trait: Trait): readonly number[] {
    const key = traitKey(trait);
    const places = this.#found.get(key) ?? this.#placesOf(trait);
    this.#found.set(key, places);
    return places;
  }

  #placesOf(trait: Trait): readonly number[] {
    if (trait.kind === "nodePort") return this.#allOf(NODE_PORT).filter((at) => this.#numberAfter(at) === trait.port);
    if (trait.kind === "text") return this.#allOf(JSON.stringify(trait.text));
    return [...this.#allOf(`"${trait.address}"`), ...(this.#oddAddresses.get(trait.address) ?? [])];
  }

  #allOf(text: string): number[] {
    const found: number[] = [];
    for (let at = this.#bytes.indexOf(text); at >= 0; at = this.#bytes.indexOf(text, at + 1)) found.push(at);
    return found;
  }

  /** The value of the property whose key stands there. */
  #numberAfter(key: number): number {
    const value = afterKey(this.#bytes, key);
    return value === undefined
      ? Number.NaN
      : Number.parseInt(this.#bytes.toString("latin1", value, value + DIGITS), 10);
  }

  /** None for what stands around the objects. */
  #itemAt(at: number): readonly number[] {
    const { starts, ends } = this.#items;
    const item = lastUpTo(starts, at);
    return item >= 0 && at < (ends[item] ?? 0) ? [item] : [];
  }
}

/** Of a port. */
const DIGITS = 5;

function addressesAt(bytes: Buffer, places: readonly number[]): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>();
  for (const at of places) {
    const address = parseAddressLeniently(bytes.toString("latin1", at + 1, bytes.indexOf('"', at + 1)))?.text;
    if (address === undefined) continue;
    const known = found.get(address);
    if (known === undefined) found.set(address, [at]);
    else known.push(at);
  }
  return found;
}

/** Place of the last number of an ascending list that is not above; -1: all are. */
function lastUpTo(ascending: readonly number[], limit: number): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ascending[middle] ?? 0) <= limit) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
