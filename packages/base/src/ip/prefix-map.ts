import type { IPFamily } from "./family.ts";
import { beneath, bitAt, has, type Prefix, type PrefixNode, put, remove } from "./prefix-node.ts";
import type { PrefixRegions } from "./prefix-regions.ts";
import { addressRange } from "./range.ts";
import { prefixLengthOf } from "./text.ts";
import type { AddressWords } from "./words.ts";

interface Roots<Value> {
  readonly IPv4?: PrefixNode<Value> | undefined;
  readonly IPv6?: PrefixNode<Value> | undefined;
}

/**
 * Values by CIDR, of both families; itself a value: a change gives another map, and costs the length of a prefix,
 * however many CIDRs there are. CIDRs are canonical; what is no CIDR is a RangeError.
 */
export class PrefixMap<Value extends object> {
  readonly #roots: Roots<Value>;

  private constructor(roots: Roots<Value>) {
    this.#roots = roots;
  }

  /** The map without CIDRs. */
  static empty<Value extends object>(): PrefixMap<Value> {
    return new PrefixMap<Value>({});
  }

  /** A map that has the value at the CIDR, in place of what was there. */
  with(cidr: string, value: Value): PrefixMap<Value> {
    const prefix = prefixOf(cidr);
    return this.#replaced(prefix, put(this.#root(prefix.words), prefix, value));
  }

  /** The same map where it has no such CIDR. */
  without(cidr: string): PrefixMap<Value> {
    const prefix = prefixOf(cidr);
    return this.#replaced(prefix, remove(this.#root(prefix.words), prefix));
  }

  /** The value at exactly this CIDR; undefined where there is none. */
  get(cidr: string): Value | undefined {
    const prefix = prefixOf(cidr);
    const node = beneath(this.#root(prefix.words), prefix);
    return node?.length === prefix.length ? node.value : undefined;
  }

  /** The value of the longest prefix that an address lies in. */
  find(address: AddressWords): Value | undefined {
    let found: Value | undefined;
    let node = this.#root(address);
    while (node !== undefined && has(node, address)) {
      if (node.value !== undefined) found = node.value;
      node = bitAt(address, node.length) === 0 ? node.zero : node.one;
    }
    return found;
  }

  /** The values of all CIDRs around one, its own with them: the widest first. */
  around(cidr: string): readonly Value[] {
    const { words, length } = prefixOf(cidr);
    const found: Value[] = [];
    let node = this.#root(words);
    while (node !== undefined && node.length <= length && has(node, words)) {
      if (node.value !== undefined) found.push(node.value);
      node = bitAt(words, node.length) === 0 ? node.zero : node.one;
    }
    return found;
  }

  /** The values of all CIDRs within one, its own with them: in the order of addresses, the wider first. */
  *within(cidr: string): Generator<Value, void> {
    const prefix = prefixOf(cidr);
    yield* valuesOf(beneath(this.#root(prefix.words), prefix));
  }

  /** All values: IPv4 first, then in the order of addresses, the wider first. */
  *values(): Generator<Value, void> {
    yield* valuesOf(this.#roots.IPv4);
    yield* valuesOf(this.#roots.IPv6);
  }

  /** Whether the CIDRs together contain every address of another one. */
  covers(cidr: string): boolean {
    const prefix = prefixOf(cidr);
    if (this.around(cidr).length > 0) return true;
    const node = beneath(this.#root(prefix.words), prefix);
    // Where halves are whole their parents are nodes.
    return node?.full === true && node.length === prefix.length;
  }

  /** Where a value that is wanted decides: the fewest CIDRs of a family, sorted. Costs the change since maps before. */
  regions(family: IPFamily, regions: PrefixRegions<Value>): readonly string[] {
    return regions.under(this.#roots[family]);
  }

  #root(words: AddressWords): PrefixNode<Value> | undefined {
    return words.length === 1 ? this.#roots.IPv4 : this.#roots.IPv6;
  }

  #replaced({ words }: Prefix, root: PrefixNode<Value> | undefined): PrefixMap<Value> {
    if (root === this.#root(words)) return this;
    return new PrefixMap(words.length === 1 ? { ...this.#roots, IPv4: root } : { ...this.#roots, IPv6: root });
  }
}

function prefixOf(cidr: string): Prefix {
  return { ...addressRange(cidr), length: prefixLengthOf(cidr) };
}

function* valuesOf<Value>(node: PrefixNode<Value> | undefined): Generator<Value, void> {
  if (node === undefined) return;
  if (node.value !== undefined) yield node.value;
  yield* valuesOf(node.zero);
  yield* valuesOf(node.one);
}
