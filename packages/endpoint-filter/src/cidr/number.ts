import { addressWords, type Groups } from "@fairlead/base";

/**
 * A canonical address as a number of its family's width.
 *
 * @throws RangeError when it is not an address
 */
export function addressNumber(address: string): bigint {
  return addressWords(address).reduce((value, word) => (value << 32n) | BigInt(word), 0n);
}

/** An IPv6 address as a number, of its groups: two steps, as this runs for every IPv6 endpoint. */
export function groupsNumber(groups: Groups): bigint {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = groups;
  const upper = (BigInt(a * 0x1_0000 + b) << 32n) | BigInt(c * 0x1_0000 + d);
  return (upper << 64n) | (BigInt(e * 0x1_0000 + f) << 32n) | BigInt(g * 0x1_0000 + h);
}
