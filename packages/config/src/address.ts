import ipaddr from "ipaddr.js";
import type { SocketAddress } from "./types.ts";

/**
 * The canonical form of an IP address. Leading zeros, short forms (`10.1`), zone ids and the IPv4-mapped form are no
 * address here.
 */
export function canonicalAddress(text: string): string | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return text;
  if (!text.includes(":") || text.includes("%") || !ipaddr.IPv6.isValid(text)) return undefined;
  const address = ipaddr.IPv6.parse(text);
  return address.isIPv4MappedAddress() ? undefined : address.toRFC5952String();
}

export interface ParsedCIDR {
  /** The network in canonical form, without host bits. */
  readonly cidr: string;
  readonly family: "IPv4" | "IPv6";
  /** The text had bits set behind the prefix; `cidr` has not. */
  readonly hostBits: boolean;
}

export function parseCIDR(text: string): ParsedCIDR | undefined {
  const [, host = "", length = ""] = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const address = canonicalAddress(host);
  if (address === undefined) return undefined;
  const family = address.includes(":") ? "IPv6" : "IPv4";
  if (Number(length) > (family === "IPv4" ? 32 : 128)) return undefined;
  const canonical = `${address}/${length}`;
  const network =
    family === "IPv4"
      ? ipaddr.IPv4.networkAddressFromCIDR(canonical).toString()
      : ipaddr.IPv6.networkAddressFromCIDR(canonical).toRFC5952String();
  return { cidr: `${network}/${length}`, family, hostBits: network !== address };
}

/** Reads `1.2.3.4:80`, `[fd00::1]:80`; a bare address gets `defaultPort`, as kube-proxy appends it. */
export function parseSocketAddress(text: string, defaultPort: number): SocketAddress | undefined {
  const bare = canonicalAddress(text);
  if (bare !== undefined) return { address: bare, port: defaultPort };
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const address = canonicalAddress(bracketed ?? plain ?? "");
  const port = Number(digits);
  if (address === undefined || port < 1 || port > 65_535) return undefined;
  return { address, port };
}

export function formatSocketAddress({ address, port }: SocketAddress): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
