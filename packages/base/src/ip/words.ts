import { ipv4Number, ipv4Text } from "./ipv4.ts";
import { ipv6Groups, ipv6Text } from "./ipv6.ts";

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

function wordMask(length: number): number {
  if (length <= 0) return 0;
  return length >= 32 ? 0xffff_ffff : (0xffff_ffff << (32 - length)) >>> 0;
}
