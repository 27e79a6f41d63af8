import { parseCIDR as parse, parseAddress, socketText } from "@fairlead/base";
import type { SocketAddress } from "./types.ts";

/**
 * The canonical form of an IP address. Leading zeros, short forms (`10.1`), zone ids and the IPv4-mapped form are no
 * address here.
 */
export function canonicalAddress(text: string): string | undefined {
  const address = parseAddress(text);
  return address === undefined || address.mapped ? undefined : address.text;
}

export interface ParsedCIDR {
  /** The network in canonical form, without host bits. */
  readonly cidr: string;
  readonly family: "IPv4" | "IPv6";
  /** The text had bits set behind the prefix; `cidr` has not. */
  readonly hostBits: boolean;
}

/** The IPv4-mapped form is not a CIDR here. */
export function parseCIDR(text: string): ParsedCIDR | undefined {
  const parsed = parse(text);
  if (parsed === undefined || parsed.mapped) return undefined;
  return { cidr: parsed.text, family: parsed.family, hostBits: parsed.hostBits };
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
  return socketText(address, port);
}
