import { ADDRESS_BITS, familyOf } from "./family.ts";

/** The CIDR of one address: `10.0.0.1/32`, `fd00::1/128`. */
export function hostCIDR(address: string): string {
  return `${address}/${ADDRESS_BITS[familyOf(address)]}`;
}

/** The prefix length of a CIDR, or of an address, which is a prefix of all its bits. */
export function prefixLengthOf(addressOrCIDR: string): number {
  const slash = addressOrCIDR.indexOf("/");
  return slash < 0 ? ADDRESS_BITS[familyOf(addressOrCIDR)] : Number(addressOrCIDR.slice(slash + 1));
}

/** An address as a host in a URL: IPv6 in brackets. */
export function bracketed(address: string): string {
  return familyOf(address) === "IPv6" ? `[${address}]` : address;
}

/** `10.0.0.1:80`, `[fd00::1]:80`. */
export function socketText(address: string, port: number | string): string {
  return `${bracketed(address)}:${port}`;
}
