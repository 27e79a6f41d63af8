import type { IPFamily } from "@fairlead/core";
import ipaddr from "ipaddr.js";
import { parseIPv4 } from "../address/ipv4.ts";
import { parseIPv6 } from "../address/ipv6.ts";

/** A network with its first and last address as numbers of its family's width. */
export interface CIDR {
  readonly family: IPFamily;
  /** Canonical, without host bits: `10.244.0.0/16`, `fd00:244::/48`. */
  readonly text: string;
  readonly length: number;
  readonly first: bigint;
  readonly last: bigint;
}

/** A CIDR as it was written: it may have bits set behind its prefix, or be of the IPv4-mapped form. */
export interface WrittenCIDR {
  readonly network: CIDR;
  readonly hostBits: boolean;
  /** The network is what `::ffff:10.244.0.0/112` stands for. */
  readonly mapped: boolean;
}

export const WIDTH: Readonly<Record<IPFamily, number>> = { IPv4: 32, IPv6: 128 };

/** @returns undefined when `text` is no address with a prefix length */
export function parseCIDR(text: string): WrittenCIDR | undefined {
  const [, address = "", digits = ""] = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const number = parseAddress(address);
  if (number === undefined) return undefined;
  const { family, mapped, value } = number;
  // A mapped prefix shorter than 96 is wider than all of IPv4: taken as it is meant, all of it.
  const length = mapped ? Math.max(0, Number(digits) - 96) : Number(digits);
  if (length > WIDTH[family]) return undefined;
  const hostMask = (1n << BigInt(WIDTH[family] - length)) - 1n;
  const first = value & ~hostMask;
  const network = { family, text: `${formatAddress(family, first)}/${length}`, length, first, last: value | hostMask };
  return { network, hostBits: first !== value, mapped };
}

function parseAddress(text: string): { family: IPFamily; mapped: boolean; value: bigint } | undefined {
  if (!text.includes(":")) {
    const value = parseIPv4(text);
    return value === -1 ? undefined : { family: "IPv4", mapped: false, value: BigInt(value) };
  }
  const parsed = parseIPv6(text);
  if (parsed === undefined) return undefined;
  return { family: parsed.family, mapped: parsed.family === "IPv4", value: BigInt(parsed.value) };
}

export function formatAddress(family: IPFamily, value: bigint): string {
  const bytes = Array.from({ length: WIDTH[family] / 8 }, (_, index) =>
    Number((value >> BigInt(WIDTH[family] - 8 * (index + 1))) & 0xffn),
  );
  const address = ipaddr.fromByteArray(bytes);
  return address instanceof ipaddr.IPv6 ? address.toRFC5952String() : address.toString();
}
