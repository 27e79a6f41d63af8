import { hash } from "node:crypto";

const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/** Bytes of a sha256 that 16 base32 characters stand for. */
const HASH_BYTES = 10;

export type ServiceChainKind = "SVC" | "SVL" | "EXT" | "FW";

/**
 * `prefix` and the first 16 characters of base32(sha256(text)), as kube-proxy names its chains. With a prefix of 12
 * characters it fills what a chain name may have.
 */
export function hashedName(prefix: string, text: string): string {
  // A string is made four times as fast as a buffer, and there is a name for each of hundreds of thousands of endpoints.
  return prefix + base32(hash("sha256", text, "binary"), HASH_BYTES);
}

/** @param bytes one to a character; `length` of them are taken, which must be a multiple of five */
function base32(bytes: string, length: number): string {
  let text = "";
  for (let at = 0, bits = 0, value = 0; at < length; at++) {
    value = ((value << 8) | bytes.charCodeAt(at)) & 0xfff;
    for (bits += 8; bits >= 5; bits -= 5) text += BASE32[(value >>> (bits - 5)) & 31];
  }
  return text;
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
