import { ADDRESS_BITS, type IPFamily, ipv4Number, ipv4Text, ipv6Groups, ipv6TextOfTools } from "@fairlead/base";
import { Problem } from "./problem.ts";

const OCTET = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const IPV4_HOST = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}/32$`);

/**
 * The CIDR as iptables-save prints it: length written out, host bits cleared, IPv6 as inet_ntop compresses it.
 *
 * @param text address, CIDR, or address with a netmask
 * @throws Problem when it is something else
 */
export function canonicalCIDR(text: string): string {
  if (IPV4_HOST.test(text)) return text;
  if (ipv4Number(text) !== -1) return `${text}/32`;
  const slash = text.indexOf("/");
  const { family, groups } = parse(slash < 0 ? text : text.slice(0, slash), text);
  const length = slash < 0 ? ADDRESS_BITS[family] : prefixLength(text.slice(slash + 1), family, text);
  return `${networkText(family, groups, length)}/${length}`;
}

interface Parsed {
  readonly family: IPFamily;
  /** Of 16 bits each: two for IPv4, eight for IPv6. */
  readonly groups: readonly number[];
}

function parse(text: string, whole: string): Parsed {
  const number = ipv4Number(text);
  if (number !== -1) return { family: "IPv4", groups: [number >>> 16, number & 0xffff] };
  const groups = ipv6Groups(text);
  if (groups === undefined) throw new Problem(`"${whole}" is not an address or CIDR`);
  return { family: "IPv6", groups };
}

function prefixLength(text: string, family: IPFamily, whole: string): number {
  const bits = ADDRESS_BITS[family];
  if (/^\d{1,3}$/.test(text) && Number(text) <= bits) return Number(text);
  const length = /[.:]/.test(text) ? maskLength(parse(text, whole)) : undefined;
  if (length === undefined) throw new Problem(`"${whole}" has no prefix length from 0 to ${bits}`);
  return length;
}

/** The length of the prefix that a netmask stands for; undefined where its bits do not all come first. */
function maskLength({ groups }: Parsed): number | undefined {
  const bits = groups.map((group) => group.toString(2).padStart(16, "0")).join("");
  const [, ones] = /^(1*)0*$/.exec(bits) ?? [];
  return ones?.length;
}

function networkText(family: IPFamily, groups: readonly number[], length: number): string {
  const kept = groups.map((group, at) => group & (0xffff << Math.max(0, 16 - Math.max(0, length - at * 16))));
  const [upper = 0, lower = 0] = kept;
  return family === "IPv4"
    ? ipv4Text(((upper << 16) | lower) >>> 0)
    : ipv6TextOfTools(kept.map((group) => group & 0xffff));
}
