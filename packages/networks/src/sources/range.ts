import { addressBits, addressBytes, bytesText, parseAddressLeniently } from "@fairlead/base";

/**
 * The fewest CIDRs that together are the addresses from `start` to `end`, both included.
 *
 * @returns undefined when they are not two addresses of one family in order
 */
export function rangeCIDRs(start: string, end: string): readonly string[] | undefined {
  const first = parseAddressLeniently(start);
  const last = parseAddressLeniently(end);
  if (first === undefined || last === undefined || first.family !== last.family) return undefined;
  const bits = addressBits[first.family];
  const cidrs: string[] = [];
  const to = numberOf(last.text);
  for (let from = numberOf(first.text); from <= to; ) {
    let hostBits = 0;
    // The widest block that begins here and does not go beyond the end.
    while (hostBits < bits && fits(from, hostBits + 1, to)) hostBits++;
    cidrs.push(`${textOf(from, bits)}/${bits - hostBits}`);
    from += 1n << BigInt(hostBits);
  }
  return cidrs.length === 0 ? undefined : cidrs;
}

function fits(from: bigint, hostBits: number, to: bigint): boolean {
  const size = 1n << BigInt(hostBits);
  return from % size === 0n && from + size - 1n <= to;
}

function numberOf(address: string): bigint {
  return addressBytes(address).reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

function textOf(value: bigint, bits: number): string {
  const bytes = Uint8Array.from({ length: bits / 8 }, (_, at) => Number((value >> BigInt(bits - 8 - at * 8)) & 0xffn));
  return bytesText(bytes);
}
