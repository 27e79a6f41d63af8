import { type AddressWords, addressWords, prefixMask } from "./words.ts";

/** A CIDR made ready for being compared with many addresses. */
export interface AddressRange {
  /** The first address, in words of 32 bits from the highest: one for IPv4, four for IPv6. */
  readonly words: AddressWords;
  /** The bits that the prefix fixes, in words as above. */
  readonly masks: AddressWords;
}

/**
 * @param cidr a CIDR, or an address, which is a range of itself
 * @throws RangeError when it is neither
 */
export function addressRange(cidr: string): AddressRange {
  const slash = cidr.indexOf("/");
  const words = addressWords(slash < 0 ? cidr : cidr.slice(0, slash));
  const length = slash < 0 ? words.length * 32 : Number(cidr.slice(slash + 1));
  return { words, masks: prefixMask(words.length, length) };
}

/** An address of the other family is in no range. */
export function inRange({ words, masks }: AddressRange, address: AddressWords): boolean {
  if (words.length !== address.length) return false;
  for (let at = 0; at < words.length; at++) {
    const differing = ((words[at] ?? 0) ^ (address[at] ?? 0)) & (masks[at] ?? 0);
    if (differing !== 0) return false;
  }
  return true;
}

/**
 * Whether a CIDR contains an address; never across families.
 *
 * @throws RangeError when one of them is not what it is said to be
 */
export function contains(cidr: string, address: string): boolean {
  return inRange(addressRange(cidr), addressWords(address));
}

/**
 * Whether a CIDR contains all of another one, or is the same; never across families.
 *
 * @throws RangeError when one of them is not a CIDR
 */
export function containsCIDR(outer: string, inner: string): boolean {
  return isWithin(addressRange(inner), addressRange(outer));
}

/** Whether a range is another one, or a part of it; never across families. */
export function isWithin(inner: AddressRange, outer: AddressRange): boolean {
  return inRange(outer, inner.words) && outer.masks.every((mask, at) => ((inner.masks[at] ?? 0) & mask) >>> 0 === mask);
}

/**
 * Whether two CIDRs have an address in common: one is within the other then; never across families.
 *
 * @throws RangeError when one of them is not a CIDR
 */
export function overlap(a: string, b: string): boolean {
  return rangesOverlap(addressRange(a), addressRange(b));
}

/** `overlap` of ranges that are read already, for comparing many. */
export function rangesOverlap(a: AddressRange, b: AddressRange): boolean {
  return isWithin(a, b) || isWithin(b, a);
}

/**
 * A test for being in one of a few CIDRs, read once. For hundreds of CIDRs, or the most specific one, see the endpoint
 * filter.
 *
 * @throws RangeError when one is not a CIDR
 */
export function inAnyOf(cidrs: readonly string[]): (address: string) => boolean {
  const ranges = cidrs.map(addressRange);
  return (address) => {
    const words = addressWords(address);
    return ranges.some((range) => inRange(range, words));
  };
}
