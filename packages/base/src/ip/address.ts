import type { IPFamily } from "./family.ts";
import { canonicalIPv4Leniently, ipv4Number, ipv4Text } from "./ipv4.ts";
import { type Groups, ipv6Groups, ipv6GroupsLeniently, ipv6Text, mappedIPv4 } from "./ipv6.ts";

/** An IP address that was read from text. */
export interface Address {
  /** The family that its canonical text is of; an IPv4-mapped IPv6 address is of IPv4. */
  readonly family: IPFamily;
  /** Canonical: as Go prints it, RFC 5952 for IPv6. */
  readonly text: string;
}

/** An address that an operator wrote. */
export interface StrictAddress extends Address {
  /** It was written as `::ffff:10.0.0.1`; `text` is the IPv4 address that this stands for. */
  readonly mapped: boolean;
}

/**
 * Reads an address of a configuration: no leading zeros in IPv4 (some read them as octal), no short forms (`10.1`), no
 * zones.
 *
 * @returns undefined when it is not an address
 */
export function parseAddress(text: string): StrictAddress | undefined {
  if (ipv4Number(text) !== -1) return { family: "IPv4", text, mapped: false };
  const groups = ipv6Groups(text);
  return groups === undefined ? undefined : { ...ofGroups(groups), mapped: mappedIPv4(groups) !== undefined };
}

/**
 * Reads an address of an API object as Kubernetes does (`ParseIPSloppy` of k8s.io/utils/net): leading zeros in IPv4
 * mean nothing, an IPv4-mapped address is the IPv4 one, zones are refused.
 *
 * @returns undefined when it is not an address
 */
export function parseAddressLeniently(text: string): Address | undefined {
  const v4 = canonicalIPv4Leniently(text);
  if (v4 !== undefined) return { family: "IPv4", text: v4 };
  const groups = ipv6GroupsLeniently(text);
  return groups === undefined ? undefined : ofGroups(groups);
}

function ofGroups(groups: Groups): Address {
  const mapped = mappedIPv4(groups);
  return mapped === undefined ? { family: "IPv6", text: ipv6Text(groups) } : { family: "IPv4", text: ipv4Text(mapped) };
}
