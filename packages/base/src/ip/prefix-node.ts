import { inRange } from "./range.ts";
import { type AddressWords, masked, prefixMask } from "./words.ts";

/** The first bits that all addresses of a CIDR have. */
export interface Prefix {
  /** The bits behind `length` are 0. */
  readonly words: AddressWords;
  readonly masks: AddressWords;
  readonly length: number;
}

/** A prefix, and what lies beneath it by the bit that follows; it has a value, or two beneath it. Never changed. */
export interface PrefixNode<Value> extends Prefix {
  /** The first of `words` and of `masks`: with IPv4 they are all that is compared. */
  readonly word: number;
  readonly mask: number;
  readonly value: Value | undefined;
  readonly zero: PrefixNode<Value> | undefined;
  readonly one: PrefixNode<Value> | undefined;
  /** Those with a value have all of its addresses. */
  readonly full: boolean;
}

type Maybe<Value> = PrefixNode<Value> | undefined;

export function put<Value>(node: Maybe<Value>, key: Prefix, value: Value): PrefixNode<Value> {
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

export function remove<Value>(node: Maybe<Value>, key: Prefix): Maybe<Value> {
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
export function beneath<Value>(node: Maybe<Value>, key: Prefix): Maybe<Value> {
  let at = node;
  while (at !== undefined && at.length < key.length) at = bitAt(key.words, at.length) === 0 ? at.zero : at.one;
  return at !== undefined && commonLength(at, key) === key.length ? at : undefined;
}

/** Whether an address of its family is one of the prefix's. */
export function has(node: PrefixNode<object>, address: AddressWords): boolean {
  if ((((address[0] ?? 0) ^ node.word) & node.mask) !== 0) return false;
  return address.length === 1 || inRange(node, address);
}

/** 0 or 1 */
export function bitAt(words: AddressWords, at: number): number {
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
  const isHalf = (half: Maybe<Value>) => half !== undefined && half.length === length + 1 && half.full;
  const full = value !== undefined || (isHalf(zero) && isHalf(one));
  return { word: words[0] ?? 0, mask: masks[0] ?? 0, words, masks, length, value, zero, one, full };
}

/** @param length at most its own */
export function shortened({ words }: Prefix, length: number): Prefix {
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
