import { addressWords } from "@fairlead/base";

/**
 * A canonical address as a number of its family's width.
 *
 * @throws RangeError when it is not an address
 */
export function addressNumber(address: string): bigint {
  return addressWords(address).reduce((value, word) => (value << 32n) | BigInt(word), 0n);
}
