/** A map from CIDRs to values that finds the longest prefix of an address. */

import type { IPFamily } from "./address.ts";
import { type AddressWords, addressRange, inRange, masked, prefixLengthOf, prefixMask, wordsText } from "./cidr.ts";

/** The first bits that all addresses of a CIDR have. */
interface Prefix {
  /** The bits behind `length` are 0. */
  readonly words: AddressWords;
  readonly masks: AddressWords;
  readonly length: number;
}

/** A prefix, and what lies beneath it by the bit that follows; it has a value, or two beneath it. Never changed. */
interface PrefixNode<Value> extends Prefix {
  /** The first of `words` and of `masks`: with IPv4 they are all that is compared. */
  readonly word: number;
  readonly mask: number;
  readonly value: Value | undefined;
  readonly zero: PrefixNode<Value> | undefined;
  readonly one: PrefixNode<Value> | undefined;
}

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

  /** Where a value that is wanted decides: the fewest CIDRs of a family, sorted. */
  regions(family: IPFamily, wanted: (value: Value) => boolean): readonly string[] {
    const root = this.#roots[family];
    return root === undefined ? [] : listOf(root, regionOf(root, wanted, false));
  }

  #root(words: AddressWords): PrefixNode<Value> | undefined {
    return words.length === 1 ? this.#roots.IPv4 : this.#roots.IPv6;
  }

  #replaced({ words }: Prefix, root: PrefixNode<Value> | undefined): PrefixMap<Value> {
    if (root === this.#root(words)) return this;
    return new PrefixMap(words.length === 1 ? { ...this.#roots, IPv4: root } : { ...this.#roots, IPv6: root });
  }
}

/** Of the addresses of a prefix: all, or those of some CIDRs beneath it, sorted. */
type Region = "all" | readonly string[];

/** @param around whether addresses are wanted that lie in the node and in nothing beneath it */
function regionOf<Value>(node: PrefixNode<Value>, wanted: (value: Value) => boolean, around: boolean): Region {
  const inside = node.value === undefined ? around : wanted(node.value);
  if (node.zero === undefined && node.one === undefined) return whole(inside);
  /** Between a node and the next one beneath it may be many bits. */
  const half = (below: PrefixNode<Value> | undefined): Region => {
    if (below === undefined) return whole(inside);
    let found = regionOf(below, wanted, inside);
    for (let length = below.length - 1; length > node.length; length--) {
      const up = shortened(below, length);
      const [zero, one] = bitAt(below.words, length) === 0 ? [found, whole(inside)] : [whole(inside), found];
      found = together(up, zero, one);
    }
    return found;
  };
  return together(node, half(node.zero), half(node.one));
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

type Maybe<Value> = PrefixNode<Value> | undefined;

function put<Value>(node: Maybe<Value>, key: Prefix, value: Value): PrefixNode<Value> {
  if (node === undefined) return made(key, value, undefined, undefined);
  const shared = commonLength(node, key);
  if (shared === node.length) {
    if (shared === key.length) return made(node, value, node.zero, node.one);
    return bitAt(key.words, shared) === 0
      ? made(node, node.value, put(node.zero, key, value), node.one)
      : made(node, node.value, node.zero, put(node.one, key, value));
  }
  if (shared === key.length) return parted(key, value, node, undefined);
  return parted(shortened(key, shared), undefined, node, made(key, value, undefined, undefined));
}

function remove<Value>(node: Maybe<Value>, key: Prefix): Maybe<Value> {
  if (node === undefined || commonLength(node, key) < node.length) return node;
  const { length, value, zero, one } = node;
  if (length === key.length) return joined(node, undefined, zero, one);
  if (bitAt(key.words, length) === 0) {
    const rest = remove(zero, key);
    return rest === zero ? node : joined(node, value, rest, one);
  }
  const rest = remove(one, key);
  return rest === one ? node : joined(node, value, zero, rest);
}

/** The node that a prefix ends at: its own, or the first one beneath it; undefined: there is nothing in it. */
function beneath<Value>(node: Maybe<Value>, key: Prefix): Maybe<Value> {
  let at = node;
  while (at !== undefined && at.length < key.length) at = bitAt(key.words, at.length) === 0 ? at.zero : at.one;
  return at !== undefined && commonLength(at, key) === key.length ? at : undefined;
}

/** Whether an address of its family is one of the prefix's. */
function has(node: PrefixNode<object>, address: AddressWords): boolean {
  if ((((address[0] ?? 0) ^ node.word) & node.mask) !== 0) return false;
  return address.length === 1 || inRange(node, address);
}

/** 0 or 1 */
function bitAt(words: AddressWords, at: number): number {
  return ((words[at >> 5] ?? 0) >>> (31 - (at & 31))) & 1;
}

function joined<Value>(prefix: Prefix, value: Value | undefined, zero: Maybe<Value>, one: Maybe<Value>): Maybe<Value> {
  if (value !== undefined || (zero !== undefined && one !== undefined)) return made(prefix, value, zero, one);
  return zero ?? one;
}

function parted<Value>(
  prefix: Prefix,
  value: Value | undefined,
  node: PrefixNode<Value>,
  other: Maybe<Value>,
): PrefixNode<Value> {
  return bitAt(node.words, prefix.length) === 0 ? made(prefix, value, node, other) : made(prefix, value, other, node);
}

function made<Value>(
  { words, masks, length }: Prefix,
  value: Value | undefined,
  zero: Maybe<Value>,
  one: Maybe<Value>,
): PrefixNode<Value> {
  return { word: words[0] ?? 0, mask: masks[0] ?? 0, words, masks, length, value, zero, one };
}

/** @param length at most its own */
function shortened({ words }: Prefix, length: number): Prefix {
  const masks = prefixMask(words.length, length);
  return { words: masked(words, masks), masks, length };
}

/** How many first bits two prefixes have in common; at most those of the shorter one. */
function commonLength(a: Prefix, b: Prefix): number {
  const most = Math.min(a.length, b.length);
  for (let at = 0; at * 32 < most; at++) {
    const differing = (a.words[at] ?? 0) ^ (b.words[at] ?? 0);
    if (differing !== 0) return Math.min(most, at * 32 + Math.clz32(differing));
  }
  return most;
}

const NONE: Region = [];

function whole(wanted: boolean): Region {
  return wanted ? "all" : NONE;
}

/** Of the two halves of a prefix. */
function together(prefix: Prefix, zero: Region, one: Region): Region {
  if (zero === "all" && one === "all") return "all";
  const found = [...listOf(half(prefix, 0), zero), ...listOf(half(prefix, 1), one)];
  return found.length === 0 ? NONE : found;
}

function listOf({ words, length }: Pick<Prefix, "words" | "length">, region: Region): readonly string[] {
  return region === "all" ? [`${wordsText(words)}/${length}`] : region;
}

function half({ words, length }: Prefix, bit: number): Pick<Prefix, "words" | "length"> {
  const set = (1 << (31 - (length & 31))) >>> 0;
  return {
    words: bit === 0 ? words : words.map((word, at) => (at === length >> 5 ? (word | set) >>> 0 : word)),
    length: length + 1,
  };
}
