import ipaddr from "ipaddr.js";

/** An address as a number; an IPv4-mapped one (`::ffff:10.0.0.1`) is the IPv4 address that it stands for. */
export type NumericAddress =
  | { readonly family: "IPv4"; readonly value: number }
  | { readonly family: "IPv6"; readonly value: bigint };

/** @returns undefined when `text` is no IPv6 address, or one with a zone */
export function parseIPv6(text: string): NumericAddress | undefined {
  const parts = text.includes("%") ? undefined : partsOf(text);
  if (parts === undefined) return undefined;
  const [a = 0, b = 0, c = 0, d = 0, e, mark, g = 0, h = 0] = parts;
  if (mark === 0xffff && (a | b | c | d) === 0 && e === 0) return { family: "IPv4", value: g * 0x1_0000 + h };
  const upper = (BigInt(a * 0x1_0000 + b) << 32n) | BigInt(c * 0x1_0000 + d);
  const lower = (BigInt((e ?? 0) * 0x1_0000 + (mark ?? 0)) << 32n) | BigInt(g * 0x1_0000 + h);
  return { family: "IPv6", value: (upper << 64n) | lower };
}

/** One parse alone: ipaddr.js has no way to ask first that does not parse too. */
function partsOf(text: string): readonly number[] | undefined {
  try {
    return ipaddr.IPv6.parse(text).parts;
  } catch {
    return undefined;
  }
}
