import { addressBytes, ipv4Number } from "@fairlead/base";

/** Bytes as lower-case hexadecimal digits: equal bytes are equal texts, and a text is a key of a map. */
export type Hex = string;

const DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Bytes as lower-case hex digits. */
export function hexOf(bytes: Iterable<number>): Hex {
  let text = "";
  for (const byte of bytes) text += DIGITS[byte & 0xff] ?? "";
  return text;
}

/** The bytes that hex digits stand for. */
export function bytesOf(hex: Hex): Uint8Array {
  return Uint8Array.from({ length: hex.length / 2 }, (_, at) => Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16));
}

/** Parts of a concatenated key begin at multiples of four bytes; what is behind a shorter one is zero. */
export function padded(hex: Hex): Hex {
  return hex.padEnd(Math.ceil(hex.length / 8) * 8, "0");
}

/** @throws RangeError when it is not an address */
export function addressHex(address: string): Hex {
  const word = ipv4Number(address);
  if (word !== -1) return portHex(word >>> 16) + portHex(word & 0xffff);
  return hexOf(addressBytes(address));
}

/** 16 bits in network byte order, as packets have ports. */
export function portHex(port: number): Hex {
  return (DIGITS[port >>> 8] ?? "") + (DIGITS[port & 0xff] ?? "");
}

const LITTLE_ENDIAN = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

/** 32 bits in the byte order of the machine, as registers hold marks and what numgen draws. */
export function hostHex(value: number): Hex {
  const bytes = [value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff];
  return hexOf(LITTLE_ENDIAN ? bytes.reverse() : bytes);
}

/** The number that `hostHex` wrote. */
export function hostNumber(hex: Hex): number {
  const bytes = [...bytesOf(hex)];
  const ordered = LITTLE_ENDIAN ? bytes.reverse() : bytes;
  return ordered.reduce((value, byte) => value * 256 + byte, 0);
}
