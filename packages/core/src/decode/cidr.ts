import ipaddr from "ipaddr.js";
import type { IPFamily } from "../objects.ts";
import { parseIPv6 } from "./address.ts";
import { canonicalIPv4 } from "./ipv4.ts";

export interface CIDR {
  readonly family: IPFamily;
  /** Host bits zeroed, as Go prints it. */
  readonly text: string;
  readonly prefixLength: number;
}

/**
 * Reads a CIDR as upstream does (`ParseCIDRSloppy`): leading zeros in IPv4 are accepted, host bits become zero, an
 * IPv4-mapped prefix is the IPv4 one that it maps. Undefined: not a CIDR.
 */
export function parseCIDR(text: string): CIDR | undefined {
  const slash = text.indexOf("/");
  if (slash === -1 || !/^\d{1,3}$/.test(text.slice(slash + 1))) return undefined;
  const prefixLength = Number(text.slice(slash + 1));
  const host = text.slice(0, slash);
  const v4 = canonicalIPv4(host);
  if (v4 !== undefined) return v4CIDR(v4, prefixLength);
  const v6 = parseIPv6(host);
  if (v6 === undefined || prefixLength > 128) return undefined;
  if (v6.isIPv4MappedAddress() && prefixLength >= 96) return v4CIDR(v6.toIPv4Address().toString(), prefixLength - 96);
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${v6}/${prefixLength}`);
  return { family: "IPv6", text: `${network}/${prefixLength}`, prefixLength };
}

function v4CIDR(host: string, prefixLength: number): CIDR | undefined {
  if (prefixLength > 32) return undefined;
  const network = ipaddr.IPv4.networkAddressFromCIDR(`${host}/${prefixLength}`);
  return { family: "IPv4", text: `${network}/${prefixLength}`, prefixLength };
}

/** Whether a canonical CIDR contains a canonical address; never across families. */
export function contains(cidr: string, address: string): boolean {
  const [network, bits] = ipaddr.parseCIDR(cidr);
  const host = ipaddr.parse(address);
  return host.kind() === network.kind() && host.match(network, bits);
}
