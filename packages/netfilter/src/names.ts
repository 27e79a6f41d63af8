import { hash } from "node:crypto";
import { base32 } from "@scure/base";

/** Bytes of a sha256 that 16 base32 characters stand for. */
const HASH_BYTES = 10;

export type ServiceChainKind = "SVC" | "SVL" | "EXT" | "FW";

/**
 * `prefix` and the first 16 characters of base32(sha256(text)), as kube-proxy names its chains. With a prefix of 12
 * characters it fills what a chain name may have.
 */
export function hashedName(prefix: string, text: string): string {
  return prefix + base32.encode(hash("sha256", text, "buffer").subarray(0, HASH_BYTES));
}

/**
 * Chain of a service port: KUBE-SVC- (cluster set), KUBE-SVL- (local set), KUBE-EXT- (external traffic), KUBE-FW- (source
 * ranges). The same in both IP families.
 *
 * @param name `namespace/name:port`, without the colon where the port has no name
 * @param protocol tcp, udp or sctp, in any case
 */
export function servicePortChainName(kind: ServiceChainKind, name: string, protocol: string): string {
  return hashedName(`KUBE-${kind}-`, name + protocol.toLowerCase());
}

/**
 * KUBE-SEP- chain of an endpoint of a service port.
 *
 * @param endpoint `address:port`, for IPv6 `[address]:port`: the chain of an IPv6 endpoint thus differs
 */
export function endpointChainName(name: string, protocol: string, endpoint: string): string {
  return hashedName("KUBE-SEP-", name + protocol.toLowerCase() + endpoint);
}

/** `address:port`, for IPv6 `[address]:port`: the form of DNAT targets, comments and endpoint chain names. */
export function endpointText(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
