import { isIPv6 } from "node:net";
import type { IPFamily } from "@fairlead/core";

export const allFamilies: readonly IPFamily[] = ["IPv4", "IPv6"];

/** The family of an address or CIDR. */
export function familyOf(addressOrCIDR: string): IPFamily {
  return isIPv6(addressOrCIDR.split("/", 1)[0] ?? "") ? "IPv6" : "IPv4";
}

export function isUnspecified(address: string): boolean {
  return address === "0.0.0.0" || address === "::";
}

export function isLoopback(address: string): boolean {
  return address.startsWith("127.") || address === "::1";
}
