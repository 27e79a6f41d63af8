import ipaddr from "ipaddr.js";
import { canonicalIPv4Leniently, ipv4Number, ipv4Text } from "./ipv4.ts";

/** The eight 16-bit groups of an IPv6 address. */
export type Groups = readonly number[];

/** Longer texts are refused unread; the longest address has 45 characters. */
const LONGEST = 64;

/** @returns undefined when `text` is not an IPv6 address, or has a zone */
export function ipv6Groups(text: string): Groups | undefined {
  return parse(text, (tail) => (ipv4Number(tail) === -1 ? undefined : tail));
}

/** As {@link ipv6Groups}, with leading zeros in a dotted tail, as Kubernetes reads it. */
export function ipv6GroupsLeniently(text: string): Groups | undefined {
  return parse(text, canonicalIPv4Leniently);
}

/** The canonical text, RFC 5952: compressed and in lower case, without a dotted tail, as Go prints it. */
export function ipv6Text(groups: Groups): string {
  return new ipaddr.IPv6([...groups]).toRFC5952String();
}

/** The IPv4 address, an unsigned number, that `::ffff:10.0.0.1` stands for; undefined for every other address. */
export function mappedIPv4(groups: Groups): number | undefined {
  const [a, b, c, d, e, mark, upper = 0, lower = 0] = groups;
  if (mark !== 0xffff || a !== 0 || b !== 0 || c !== 0 || d !== 0 || e !== 0) return undefined;
  return upper * 0x1_0000 + lower;
}

/** @param dotted gives a dotted tail in canonical form, or undefined when it is not an address */
function parse(text: string, dotted: (tail: string) => string | undefined): Groups | undefined {
  if (!text.includes(":") || text.includes("%") || text.length > LONGEST) return undefined;
  const plain = text.includes(".") ? withoutDots(text, dotted) : text;
  if (plain === undefined) return undefined;
  try {
    // Not isValid first: it parses too, and a list may hold a hundred thousand addresses.
    return ipaddr.IPv6.parse(plain).parts;
  } catch {
    return undefined;
  }
}

/** Writes a dotted tail as two groups: ipaddr.js takes `::1.2.3.4` for the IPv4-mapped address, which it is not. */
function withoutDots(text: string, dotted: (tail: string) => string | undefined): string | undefined {
  const start = text.lastIndexOf(":") + 1;
  const tail = dotted(text.slice(start));
  if (tail === undefined) return undefined;
  const value = ipv4Number(tail);
  return `${text.slice(0, start)}${(value >>> 16).toString(16)}:${(value & 0xffff).toString(16)}`;
}

/** As glibc's inet_ntop prints it: IPv4-compatible and IPv4-mapped addresses with a dotted tail (`::ffff:10.0.0.1`). */
export function ipv6TextOfTools(groups: Groups): string {
  const zeroes = groups.findIndex((group) => group !== 0);
  const mapped = mappedIPv4(groups) !== undefined;
  if (zeroes !== 6 && !mapped) return ipv6Text(groups);
  const [upper = 0, lower = 0] = groups.slice(6);
  return `${mapped ? "::ffff:" : "::"}${ipv4Text(upper * 0x1_0000 + lower)}`;
}
