import ipaddr from "ipaddr.js";
import { Problem } from "./problem.ts";

const OCTET = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const IPV4 = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`);
const IPV4_HOST = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}/32$`);

/**
 * The CIDR as iptables-save prints it: length written out, host bits cleared, IPv6 as inet_ntop compresses it.
 *
 * @param text address, CIDR, or address with a netmask
 * @throws Problem when it is none of these
 */
export function canonicalCIDR(text: string): string {
  if (IPV4_HOST.test(text)) return text;
  if (IPV4.test(text)) return `${text}/32`;
  const slash = text.indexOf("/");
  const address = parseAddress(slash < 0 ? text : text.slice(0, slash), text);
  const bits = address.kind() === "ipv4" ? 32 : 128;
  const length = slash < 0 ? bits : prefixLength(text.slice(slash + 1), bits, text);
  return `${network(address, length)}/${length}`;
}

function parseAddress(text: string, whole: string): ipaddr.IPv4 | ipaddr.IPv6 {
  if (!IPV4.test(text) && !(text.includes(":") && ipaddr.IPv6.isValid(text) && !text.includes("%"))) {
    throw new Problem(`"${whole}" is no address or CIDR`);
  }
  return ipaddr.parse(text.includes(":") ? withoutDots(text) : text);
}

/** `::1.2.3.4` as `::102:304`: ipaddr.js would read it as `::ffff:1.2.3.4`, another address. */
function withoutDots(text: string): string {
  return text.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...octets: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = octets.slice(0, 4).map(Number);
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  });
}

function prefixLength(text: string, bits: number, whole: string): number {
  if (/^\d{1,3}$/.test(text) && Number(text) <= bits) return Number(text);
  const length = /[.:]/.test(text) ? parseAddress(text, whole).prefixLengthFromSubnetMask() : null;
  if (length === null) throw new Problem(`"${whole}" has no prefix length from 0 to ${bits}`);
  return length;
}

function network(address: ipaddr.IPv4 | ipaddr.IPv6, length: number): string {
  const bytes = address.toByteArray().map((byte, at) => byte & (0xff << Math.max(0, 8 - Math.max(0, length - at * 8))));
  return addressText(ipaddr.fromByteArray(bytes));
}

/** As glibc's inet_ntop: IPv4-compatible and IPv4-mapped addresses with their last four bytes as an IPv4 address. */
function addressText(address: ipaddr.IPv4 | ipaddr.IPv6): string {
  if (!("parts" in address)) return address.toString();
  const { parts } = address;
  const zeroes = parts.findIndex((part) => part !== 0);
  const mapped = zeroes === 5 && parts[5] === 0xffff;
  if (zeroes !== 6 && !mapped) return address.toString();
  const tail = ipaddr.fromByteArray(address.toByteArray().slice(12)).toString();
  return mapped ? `::ffff:${tail}` : `::${tail}`;
}
