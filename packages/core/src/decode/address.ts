import ipaddr from "ipaddr.js";
import type { IPFamily } from "../objects.ts";
import { canonicalIPv4 } from "./ipv4.ts";

export interface Address {
  readonly family: IPFamily;
  /** As Go prints it: IPv6 compressed and in lower case, IPv4-mapped IPv6 as IPv4. */
  readonly text: string;
}

/**
 * Reads an address as upstream does: leading zeros in IPv4 are accepted, an IPv4-mapped IPv6 address (`::ffff:10.0.0.1`)
 * is IPv4, zones are refused. Undefined: not an address.
 */
export function parseAddress(text: string): Address | undefined {
  const v4 = canonicalIPv4(text);
  if (v4 !== undefined) return { family: "IPv4", text: v4 };
  const v6 = parseIPv6(text);
  if (v6 === undefined) return undefined;
  if (v6.isIPv4MappedAddress()) return { family: "IPv4", text: v6.toIPv4Address().toString() };
  return { family: "IPv6", text: v6.toString() };
}

/** An IPv6 address, mapped ones included. Undefined: not one. */
export function parseIPv6(text: string): ipaddr.IPv6 | undefined {
  if (!text.includes(":") || text.includes("%") || text.length > 64) return undefined;
  const groups = text.includes(".") ? withoutDots(text) : text;
  if (groups === undefined) return undefined;
  try {
    // Not isValid first: it parses too, and a list may hold a hundred thousand addresses.
    return ipaddr.IPv6.parse(groups);
  } catch {
    return undefined;
  }
}

/** Writes an IPv4 tail as two groups: ipaddr.js takes `::1.2.3.4` for the IPv4-mapped address, which it is not. */
function withoutDots(text: string): string | undefined {
  const tail = text.lastIndexOf(":") + 1;
  const v4 = canonicalIPv4(text.slice(tail));
  if (v4 === undefined) return undefined;
  const [a, b, c, d] = v4.split(".").map((octet) => Number(octet).toString(16).padStart(2, "0"));
  return `${text.slice(0, tail)}${a}${b}:${c}${d}`;
}

/** The family of a canonical address or CIDR. */
export function familyOf(canonical: string): IPFamily {
  return canonical.includes(":") ? "IPv6" : "IPv4";
}

/** reserved: 0.0.0.0/8 and 240.0.0.0/4. */
export type SpecialAddress =
  | "unspecified"
  | "loopback"
  | "link-local"
  | "IPv6 link-local"
  | "multicast"
  | "reserved"
  | "broadcast";

/**
 * What no host can be reached by. Upstream's ValidateEndpointIP, which external IPs and endpoints have to pass, lets
 * reserved addresses and multicast pass but for 224.0.0.0/24 and ff02::/16 ("probably a bug", it says).
 */
export const UNUSABLE: readonly SpecialAddress[] = ["unspecified", "multicast", "reserved", "broadcast"];

/** What, beside that, is another host for each who uses it. */
export const AMBIGUOUS: readonly SpecialAddress[] = ["loopback", "link-local", "IPv6 link-local"];

/** Which special kind of address it is. Takes canonical text; undefined: an ordinary address. */
export function specialKind(address: Address): SpecialAddress | undefined {
  return address.family === "IPv4" ? specialIPv4(address.text) : specialIPv6(address.text);
}

function specialIPv4(text: string): SpecialAddress | undefined {
  const first = Number.parseInt(text, 10);
  if (first === 0) return text === "0.0.0.0" ? "unspecified" : "reserved";
  if (first === 127) return "loopback";
  if (first >= 240) return text === "255.255.255.255" ? "broadcast" : "reserved";
  if (first >= 224) return "multicast";
  return text.startsWith("169.254.") ? "link-local" : undefined;
}

function specialIPv6(text: string): SpecialAddress | undefined {
  if (text === "::") return "unspecified";
  if (text === "::1") return "loopback";
  if (/^fe[89ab][0-9a-f]:/.test(text)) return "IPv6 link-local";
  return /^ff[0-9a-f]{2}:/.test(text) ? "multicast" : undefined;
}
