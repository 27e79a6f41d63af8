/** An IP family, spelled as Kubernetes' `ipFamilies` spells it. */
export type IPFamily = "IPv4" | "IPv6";

/** Both families, in the order in which Kubernetes lists them by default. */
export const IP_FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];

/** Bits of an address. */
export const ADDRESS_BITS: Readonly<Record<IPFamily, number>> = { IPv4: 32, IPv6: 128 };

/** The family of what is known to be an address or CIDR: only its first colon is looked for. */
export function familyOf(addressOrCIDR: string): IPFamily {
  return addressOrCIDR.includes(":") ? "IPv6" : "IPv4";
}

/** For `filter`: keeps the addresses and CIDRs of one family. */
export function ofFamily(family: IPFamily): (addressOrCIDR: string) => boolean {
  return (addressOrCIDR) => familyOf(addressOrCIDR) === family;
}
