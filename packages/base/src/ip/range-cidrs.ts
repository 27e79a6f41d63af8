import { parseAddressLeniently } from "./address.ts";
import { addressBytes, bytesText } from "./bytes.ts";
import { ADDRESS_BITS, type IPFamily } from "./family.ts";

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
