import { ADDRESS_BITS, type IPFamily, parseCIDR as parse } from "@fairlead/base";
import { addressNumber } from "./number.ts";

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

/** @returns undefined when `text` is not an address with a prefix length */
export function parseCIDR(text: string): WrittenCIDR | undefined {
  const written = parse(text);
  if (written === undefined) return undefined;
  const { family, prefixLength: length, hostBits, mapped } = written;
  const first = addressNumber(written.text.slice(0, written.text.indexOf("/")));
  const last = first | ((1n << BigInt(ADDRESS_BITS[family] - length)) - 1n);
  return { network: { family, text: written.text, length, first, last }, hostBits, mapped };
}
