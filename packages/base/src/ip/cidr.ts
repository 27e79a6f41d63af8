import { type Address, parseAddress, parseAddressLeniently } from "./address.ts";
import { ADDRESS_BITS, type IPFamily } from "./family.ts";
import { ipv6GroupsLeniently, mappedIPv4 } from "./ipv6.ts";
import { addressWords, masked, prefixMask, wordsText } from "./words.ts";

/** An IP network that was read from text. */
export interface CIDR {
  /** The family that its canonical text is of. */
  readonly family: IPFamily;
  /** Canonical, without host bits: `10.244.0.0/16`, `fd00:244::/48`. */
  readonly text: string;
  /** Length of the prefix in bits: 0 to 32 for IPv4, 0 to 128 for IPv6. */
  readonly prefixLength: number;
}

/** A CIDR that an operator wrote. */
export interface StrictCIDR extends CIDR {
  /** It had bits set behind its prefix; `text` has not. */
  readonly hostBits: boolean;
  /** It was written as `::ffff:10.244.0.0/112`; `text` is the IPv4 network that this stands for. */
  readonly mapped: boolean;
}

/**
 * Reads a CIDR of a configuration: the address as by `parseAddress`, the length without leading zeros. What the caller
 * may want to refuse besides (host bits, the mapped form) is told. A mapped prefix shorter than 96 bits, which is wider
 * than IPv4, is taken as `0.0.0.0/0`.
 *
 * @returns undefined when it is not an address with a prefix length
 */
export function parseCIDR(text: string): StrictCIDR | undefined {
  const [, host = "", digits = ""] = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const address = parseAddress(host);
  if (address === undefined) return undefined;
  const { mapped } = address;
  if (mapped && Number(digits) > 128) return undefined;
  const cidr = cidrOf(address, mapped ? Math.max(0, Number(digits) - 96) : Number(digits));
  return cidr && { ...cidr, hostBits: cidr.text !== `${address.text}/${cidr.prefixLength}`, mapped };
}

/**
 * Reads a CIDR of an API object as Kubernetes does (`ParseCIDRSloppy` of k8s.io/utils/net): host bits become zero,
 * leading zeros in IPv4 mean nothing, an IPv4-mapped prefix is the IPv4 one.
 *
 * @returns undefined when it is not a CIDR
 */
export function parseCIDRLeniently(text: string): CIDR | undefined {
  const slash = text.indexOf("/");
  if (slash === -1 || !/^\d{1,3}$/.test(text.slice(slash + 1))) return undefined;
  const host = text.slice(0, slash);
  const length = Number(text.slice(slash + 1));
  const address = parseAddressLeniently(host);
  if (address === undefined || address.family === "IPv6" || !host.includes(":"))
    return address && cidrOf(address, length);
  // A mapped prefix that is wider than IPv4 stays an IPv6 one.
  if (length >= 96) return cidrOf(address, length - 96);
  const groups = ipv6GroupsLeniently(host);
  return groups !== undefined && mappedIPv4(groups) !== undefined
    ? cidrOf({ family: "IPv6", text: `::ffff:${address.text}` }, length)
    : undefined;
}

function cidrOf({ family, text }: Address, prefixLength: number): CIDR | undefined {
  if (prefixLength > ADDRESS_BITS[family]) return undefined;
  if (prefixLength === ADDRESS_BITS[family]) return { family, text: `${text}/${prefixLength}`, prefixLength };
  const words = addressWords(text);
  const network = wordsText(masked(words, prefixMask(words.length, prefixLength)));
  return { family, text: `${network}/${prefixLength}`, prefixLength };
}
