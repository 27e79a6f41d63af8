import { ipv4Number } from "./ipv4.ts";
import { ipv6Groups, ipv6TextOfTools } from "./ipv6.ts";

/**
 * An address in network byte order, 4 or 16 bytes, as netlink messages hold it.
 *
 * @throws RangeError when it is not an address
 */
export function addressBytes(text: string): Uint8Array {
  const word = ipv4Number(text);
  if (word !== -1) return Uint8Array.of(word >>> 24, word >>> 16, word >>> 8, word);
  const groups = ipv6Groups(text);
  if (groups === undefined) throw new RangeError(`"${text}" is not an IP address`);
  return Uint8Array.from(groups.flatMap((group) => [group >>> 8, group]));
}

/** The text of 4 or 16 bytes, as the kernel's tools print it. */
export function bytesText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join(".");
  return ipv6TextOfTools(Array.from({ length: 8 }, (_, at) => ((bytes[2 * at] ?? 0) << 8) | (bytes[2 * at + 1] ?? 0)));
}
