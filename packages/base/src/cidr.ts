/** CIDRs and address ranges: parsed, compared, and split. */

import {
  ADDRESS_BITS,
  type Address,
  addressBytes,
  bytesText,
  familyOf,
  type IPFamily,
  ipv4Number,
  ipv4Text,
  ipv6Groups,
  ipv6GroupsLeniently,
  ipv6Text,
  mappedIPv4,
  parseAddress,
  parseAddressLeniently,
} from "./address.ts";

/** An IP network that was read from text. */
export interface CIDR {
  /** The family that its canonical text is of. */
  readonly family: IPFamily;
  /** Canonical, without host bits: `10.244.0.0/16`, `fd00:244::/48`. */
  readonly text: string;
  /** Length of the prefix in bits: 0 to 32 for IPv4, 0 to 128 for IPv6. */
  readonly prefixLength: number;
}

export interface StrictCIDR extends CIDR {
  /** It had bits set behind its prefix; `text` has not. */
  readonly hostBits: boolean;
  /** It was written as `::ffff:10.244.0.0/112`; `text` is the IPv4 network that this stands for. */
  readonly mapped: boolean;
}

/**
 * Reads a CIDR of a configuration: the address as by `parseAddress`, the length without leading zeros. The result says
 * what the caller may also want to refuse (host bits, the mapped form). A mapped prefix shorter than 96 bits, which is
 * wider than IPv4, is taken as `0.0.0.0/0`.
 *
 * @returns undefined when it is not an address with a prefix length
 */
export function parseCIDR(text: string): StrictCIDR | undefined {
  const [, host = "", digits = ""] = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const address = parseAddress(host);
  if (address === undefined) return undefined;
  const { mapped } = address;
  if (mapped && Number(digits) > 128) return undefined;
  const cidr = cidrOf(address, mapped ? Math.max(0, Number(digits) - 96) : Number(digits));
  return cidr && { ...cidr, hostBits: cidr.text !== `${address.text}/${cidr.prefixLength}`, mapped };
}

/**
 * Reads a CIDR of an API object as Kubernetes does (`ParseCIDRSloppy` of k8s.io/utils/net): host bits become zero,
 * leading zeros in IPv4 mean nothing, an IPv4-mapped prefix is the IPv4 one.
 *
 * @returns undefined when it is not a CIDR
 */
export function parseCIDRLeniently(text: string): CIDR | undefined {
  const slash = text.indexOf("/");
  if (slash === -1 || !/^\d{1,3}$/.test(text.slice(slash + 1))) return undefined;
  const host = text.slice(0, slash);
  const length = Number(text.slice(slash + 1));
  const address = parseAddressLeniently(host);
  if (address === undefined || address.family === "IPv6" || !host.includes(":"))
    return address && cidrOf(address, length);
  // A mapped prefix that is wider than IPv4 stays an IPv6 one.
  if (length >= 96) return cidrOf(address, length - 96);
  const groups = ipv6GroupsLeniently(host);
  return groups !== undefined && mappedIPv4(groups) !== undefined
    ? cidrOf({ family: "IPv6", text: `::ffff:${address.text}` }, length)
    : undefined;
}

/** An address as unsigned 32-bit numbers, one for IPv4 and four for IPv6: compared by the ten thousand. */
export type AddressWords = readonly number[];

/** @throws RangeError when it is not an address */
export function addressWords(address: string): AddressWords {
  const word = ipv4Number(address);
  if (word !== -1) return [word];
  const groups = ipv6Groups(address);
  if (groups === undefined) throw new RangeError(`"${address}" is not an IP address`);
  return [0, 2, 4, 6].map((at) => (groups[at] ?? 0) * 0x1_0000 + (groups[at + 1] ?? 0));
}

/** The canonical text. */
export function wordsText(words: AddressWords): string {
  const [first = 0] = words;
  return words.length === 1 ? ipv4Text(first) : ipv6Text(words.flatMap((word) => [word >>> 16, word & 0xffff]));
}

/** Clears the bits that are not in the mask. */
export function masked(address: AddressWords, mask: AddressWords): AddressWords {
  return address.map((word, at) => (word & (mask[at] ?? 0)) >>> 0);
}

/** The mask of a prefix, for an address of `words` words: 1 or 4. */
export function prefixMask(words: number, length: number): AddressWords {
  if (words === 1) return [wordMask(length)];
  return [wordMask(length), wordMask(length - 32), wordMask(length - 64), wordMask(length - 96)];
}

/** The CIDR of one address: `10.0.0.1/32`, `fd00::1/128`. */
export function hostCIDR(address: string): string {
  return `${address}/${ADDRESS_BITS[familyOf(address)]}`;
}

/** The prefix length of a CIDR, or of an address, which is a prefix of all its bits. */
export function prefixLengthOf(addressOrCIDR: string): number {
  const slash = addressOrCIDR.indexOf("/");
  return slash < 0 ? ADDRESS_BITS[familyOf(addressOrCIDR)] : Number(addressOrCIDR.slice(slash + 1));
}

/** An address as a host in a URL: IPv6 in brackets. */
export function bracketed(address: string): string {
  return familyOf(address) === "IPv6" ? `[${address}]` : address;
}

/** `10.0.0.1:80`, `[fd00::1]:80`. */
export function socketText(address: string, port: number | string): string {
  return `${bracketed(address)}:${port}`;
}

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

/**
 * The fewest CIDRs that together are the addresses from `start` to `end`, both included.
 *
 * @returns undefined when they are not two addresses of one family in order
 */
export function rangeCIDRs(start: string, end: string): readonly string[] | undefined {
  const first = parseAddressLeniently(start);
  const last = parseAddressLeniently(end);
  if (first === undefined || last === undefined || first.family !== last.family) return undefined;
  const cidrs = numberRangeCIDRs(first.family, numberOf(first.text), numberOf(last.text));
  return cidrs.length === 0 ? undefined : cidrs;
}

function cidrOf({ family, text }: Address, prefixLength: number): CIDR | undefined {
  if (prefixLength > ADDRESS_BITS[family]) return undefined;
  if (prefixLength === ADDRESS_BITS[family]) return { family, text: `${text}/${prefixLength}`, prefixLength };
  const words = addressWords(text);
  const network = wordsText(masked(words, prefixMask(words.length, prefixLength)));
  return { family, text: `${network}/${prefixLength}`, prefixLength };
}

function wordMask(length: number): number {
  if (length <= 0) return 0;
  return length >= 32 ? 0xffff_ffff : (0xffff_ffff << (32 - length)) >>> 0;
}

/** The same of addresses as numbers of their family's width; none where the last one is before the first. */
function numberRangeCIDRs(family: IPFamily, first: bigint, last: bigint): readonly string[] {
  const bits = ADDRESS_BITS[family];
  const cidrs: string[] = [];
  for (let from = first; from <= last; ) {
    let hostBits = 0;
    // The widest block that begins here and does not go beyond the end.
    while (hostBits < bits && fits(from, hostBits + 1, last)) hostBits++;
    cidrs.push(`${addressText(from, bits)}/${bits - hostBits}`);
    from += 1n << BigInt(hostBits);
  }
  return cidrs;
}

function fits(from: bigint, hostBits: number, to: bigint): boolean {
  const size = 1n << BigInt(hostBits);
  return from % size === 0n && from + size - 1n <= to;
}

function numberOf(address: string): bigint {
  return addressBytes(address).reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

function addressText(value: bigint, bits: number): string {
  const bytes = Uint8Array.from({ length: bits / 8 }, (_, at) => Number((value >> BigInt(bits - 8 - at * 8)) & 0xffn));
  return bytesText(bytes);
}
