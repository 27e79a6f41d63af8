import { sha256 } from "#sha256";

/** RFC 4648's alphabet for base32, as character codes. */
const BASE32 = Uint8Array.from("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", (digit) => digit.charCodeAt(0));

/** What a service's chain is for: its endpoints, those of this node, its external traffic, its firewall. */
export type ServiceChainKind = "SVC" | "SVL" | "EXT" | "FW";

/**
 * `prefix` and the first 16 characters of base32(sha256(text)), as kube-proxy names its chains. With a prefix of 12
 * characters it fills what a chain name may have.
 */
export function hashedName(prefix: string, text: string): string {
  const bytes = sha256(text);
  return prefix + base32(bytes, 0) + base32(bytes, 5);
}

/** Eight digits for five bytes, of which each is a character. Made at once: digit by digit takes twice as long. */
function base32(bytes: string, at: number): string {
  const first =
    (bytes.charCodeAt(at) << 24) |
    (bytes.charCodeAt(at + 1) << 16) |
    (bytes.charCodeAt(at + 2) << 8) |
    bytes.charCodeAt(at + 3);
  const last = bytes.charCodeAt(at + 4);
  return String.fromCharCode(
    digit(first >>> 27),
    digit(first >>> 22),
    digit(first >>> 17),
    digit(first >>> 12),
    digit(first >>> 7),
    digit(first >>> 2),
    digit((first << 3) | (last >>> 5)),
    digit(last),
  );
}

/** For the lowest five bits. */
function digit(bits: number): number {
  return BASE32[bits & 31] ?? 0;
}

/**
 * Chain of a service port: KUBE-SVC- (cluster set), KUBE-SVL- (local set), KUBE-EXT- (external traffic), KUBE-FW-
 * (source ranges). The same in both IP families.
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
