import type { Address } from "@fairlead/base";

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

/** What, alongside that, is another host for each who uses it. */
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
