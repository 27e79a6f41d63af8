/** Numbers, protocols and networks in a rule, in the form in which iptables prints them. */

import { ADDRESS_BITS, type IPFamily, ipv4Number, ipv4Text, ipv6Groups, ipv6TextOfTools } from "@fairlead/base";
import { Problem } from "./options.ts";

/** Unsigned number in the forms of strtoul: 16, 0x10, 020. */
export function parseUnsigned(text: string, max: number, what: string): number {
  const value = unsigned(text);
  if (value === undefined || value > max) throw new Problem(`${what} "${text}" is not a number from 0 to ${max}`);
  return value;
}

/** `value` or `value/mask`. */
export function parseMark(text: string): { value: number; mask: number | undefined } {
  const slash = text.indexOf("/");
  if (slash < 0) return { value: parseUnsigned(text, 0xffffffff, "mark"), mask: undefined };
  return {
    value: parseUnsigned(text.slice(0, slash), 0xffffffff, "mark"),
    mask: parseUnsigned(text.slice(slash + 1), 0xffffffff, "mask"),
  };
}

/** xt_statistic keeps a probability as a count of 2^31. */
const PROBABILITY_UNIT = 0x80000000;

/**
 * A probability in the form in which iptables-save prints it: rounded to the kernel's unit of 2^-31, 11 digits.
 *
 * @param probability 0 to 1
 * @throws RangeError outside of it
 */
export function statisticProbability(probability: number): string {
  if (!(probability >= 0 && probability <= 1)) throw new RangeError(`probability ${probability}: must be from 0 to 1`);
  return (Math.round(probability * PROBABILITY_UNIT) / PROBABILITY_UNIT).toFixed(11);
}

/**
 * The probability of the first of some choices that has `weight` of their `total` as kube-proxy's rule has it after the
 * kernel's rounding: their quotient with 10 digits, then `statisticProbability`.
 */
export function shareProbability(weight: number, total: number): string {
  return statisticProbability(Number((weight / total).toFixed(10)));
}

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

/** Numbers that iptables-save 1.8 prints as names (xtables_chain_protos, after /etc/protocols of Debian). */
const PROTOCOL_NAMES: Readonly<Record<string, string>> = {
  "1": "icmp",
  "6": "tcp",
  "17": "udp",
  "50": "esp",
  "51": "ah",
  "58": "ipv6-icmp",
  "132": "sctp",
  "136": "udplite",
  icmpv6: "ipv6-icmp",
};

/** Undefined: every protocol. */
export function canonicalProtocol(text: string): string | undefined {
  const name = text.toLowerCase();
  return name === "all" || name === "0" ? undefined : (PROTOCOL_NAMES[name] ?? name);
}

function unsigned(text: string): number | undefined {
  if (/^0x[0-9a-f]+$/i.test(text)) return Number.parseInt(text.slice(2), 16);
  if (/^0[0-7]+$/.test(text)) return Number.parseInt(text, 8);
  return /^\d+$/.test(text) ? Number(text) : undefined;
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
