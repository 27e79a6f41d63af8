/** IP addresses: their forms as text, number and bytes, and protocols and ports with them. */

import ipaddr from "ipaddr.js";
import { isAbsent } from "./json.ts";

/** An IP address that was read from text. */
export interface Address {
  /** The family that its canonical text is of; an IPv4-mapped IPv6 address is of IPv4. */
  readonly family: IPFamily;
  /** Canonical: as Go prints it, RFC 5952 for IPv6. */
  readonly text: string;
}

/** An address that an operator wrote. */
export interface StrictAddress extends Address {
  /** It was written as `::ffff:10.0.0.1`; `text` is the IPv4 address that this stands for. */
  readonly mapped: boolean;
}

/**
 * Reads an address of a configuration: no leading zeros in IPv4 (some read them as octal), no short forms (`10.1`), no
 * zones.
 *
 * @returns undefined when it is not an address
 */
export function parseAddress(text: string): StrictAddress | undefined {
  if (ipv4Number(text) !== -1) return { family: "IPv4", text, mapped: false };
  const groups = ipv6Groups(text);
  return groups === undefined ? undefined : { ...ofGroups(groups), mapped: mappedIPv4(groups) !== undefined };
}

/**
 * Reads an address of an API object as Kubernetes does (`ParseIPSloppy` of k8s.io/utils/net): leading zeros in IPv4
 * mean nothing, an IPv4-mapped address is the IPv4 one, zones are refused.
 *
 * @returns undefined when it is not an address
 */
export function parseAddressLeniently(text: string): Address | undefined {
  const v4 = canonicalIPv4Leniently(text);
  if (v4 !== undefined) return { family: "IPv4", text: v4 };
  const groups = ipv6GroupsLeniently(text);
  return groups === undefined ? undefined : ofGroups(groups);
}

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

const DOT = 46;
const ZERO = 48;

/**
 * Reads a dotted address without making an object: this runs for every endpoint of every service.
 *
 * @param from where in `text` the address begins
 * @returns the address as an unsigned 32-bit number, or −1 when what stands there is not a canonical IPv4 address
 */
export function ipv4Number(text: string, from = 0): number {
  let address = 0;
  let octet = -1;
  let dots = 0;
  for (let index = from; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === DOT) {
      if (octet === -1 || ++dots > 3) return -1;
      address = address * 256 + octet;
      octet = -1;
      continue;
    }
    const digit = code - ZERO;
    // An octet that begins with a zero and goes on is octal to some readers.
    if (digit < 0 || digit > 9 || octet === 0) return -1;
    octet = octet === -1 ? digit : octet * 10 + digit;
    if (octet > 255) return -1;
  }
  return dots === 3 && octet !== -1 ? address * 256 + octet : -1;
}

/** The canonical text of an unsigned 32-bit number. */
export function ipv4Text(value: number): string {
  return `${value >>> 24}.${(value >>> 16) & 0xff}.${(value >>> 8) & 0xff}.${value & 0xff}`;
}

/**
 * Reads dotted decimal as Kubernetes does (`ParseIPSloppy` of k8s.io/utils/net): leading zeros are allowed and mean
 * nothing.
 *
 * @returns the canonical text, the same string where it is canonical already: lists hold a hundred thousand of these;
 *   undefined when it is not an IPv4 address
 */
function canonicalIPv4Leniently(text: string): string | undefined {
  const first = text.indexOf(".");
  const second = text.indexOf(".", first + 1);
  const third = text.indexOf(".", second + 1);
  // With too few dots the search for the next one starts over, and finds an earlier one or none.
  if (first === -1 || second <= first || third <= second) return undefined;
  const a = octetBetween(text, 0, first);
  const b = octetBetween(text, first + 1, second);
  const c = octetBetween(text, second + 1, third);
  const d = octetBetween(text, third + 1, text.length);
  if (a === -1 || b === -1 || c === -1 || d === -1) return undefined;
  const digits = digitsOf(a) + digitsOf(b) + digitsOf(c) + digitsOf(d);
  return digits + 3 === text.length ? text : `${a}.${b}.${c}.${d}`;
}

/** The eight 16-bit groups of an IPv6 address. */
export type Groups = readonly number[];

/** @returns undefined when `text` is not an IPv6 address, or has a zone */
export function ipv6Groups(text: string): Groups | undefined {
  return parse(text, (tail) => (ipv4Number(tail) === -1 ? undefined : tail));
}

/** As {@link ipv6Groups}, with leading zeros in a dotted tail, as Kubernetes reads it. */
export function ipv6GroupsLeniently(text: string): Groups | undefined {
  return parse(text, canonicalIPv4Leniently);
}

/** The canonical text, RFC 5952: compressed and in lower case, without a dotted tail, as Go prints it. */
export function ipv6Text(groups: Groups): string {
  return new ipaddr.IPv6([...groups]).toRFC5952String();
}

/** The IPv4 address, an unsigned number, that `::ffff:10.0.0.1` stands for; undefined for every other address. */
export function mappedIPv4(groups: Groups): number | undefined {
  const [a, b, c, d, e, mark, upper = 0, lower = 0] = groups;
  if (mark !== 0xffff || a !== 0 || b !== 0 || c !== 0 || d !== 0 || e !== 0) return undefined;
  return upper * 0x1_0000 + lower;
}

/** As glibc's inet_ntop prints it: IPv4-compatible and IPv4-mapped addresses with a dotted tail (`::ffff:10.0.0.1`). */
export function ipv6TextOfTools(groups: Groups): string {
  const zeroes = groups.findIndex((group) => group !== 0);
  const mapped = mappedIPv4(groups) !== undefined;
  if (zeroes !== 6 && !mapped) return ipv6Text(groups);
  const [upper = 0, lower = 0] = groups.slice(6);
  return `${mapped ? "::ffff:" : "::"}${ipv4Text(upper * 0x1_0000 + lower)}`;
}

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

/** Whether it stands for every address of the host: `0.0.0.0`, `::`. Takes canonical text. */
export function isUnspecified(address: string): boolean {
  return address === "0.0.0.0" || address === "::";
}

/** Whether it leads back to the host: 127.0.0.0/8, `::1`. Takes canonical text, of an address or CIDR. */
export function isLoopback(address: string): boolean {
  return address.startsWith("127.") || address === "::1" || address === "::1/128";
}

/** The transport protocols that a Service port can have (core/v1 Protocol). */
export type Protocol = "TCP" | "UDP" | "SCTP";

/** What is kept is one of these, not the text of each object. */
const PROTOCOLS: readonly Protocol[] = ["TCP", "UDP", "SCTP"];

/** A protocol in untrusted JSON; absent means TCP, as in the API. @returns undefined for other values */
export function protocolOf(value: unknown): Protocol | undefined {
  if (isAbsent(value) || value === "") return "TCP";
  return PROTOCOLS.find((protocol) => protocol === value);
}

/** A port of a service or an endpoint in untrusted JSON. */
export function isPort(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 65_535;
}

function ofGroups(groups: Groups): Address {
  const mapped = mappedIPv4(groups);
  return mapped === undefined ? { family: "IPv6", text: ipv6Text(groups) } : { family: "IPv4", text: ipv4Text(mapped) };
}

const NINE = 57;

/** The number from `start` to `end`, or −1 when what stands there is not one up to 255. */
function octetBetween(text: string, start: number, end: number): number {
  if (start === end) return -1;
  let value = 0;
  for (let index = start; index < end; index++) {
    const code = text.charCodeAt(index);
    if (code < ZERO || code > NINE) return -1;
    value = value * 10 + code - ZERO;
    if (value > 255) return -1;
  }
  return value;
}

function digitsOf(octet: number): number {
  if (octet < 10) return 1;
  return octet < 100 ? 2 : 3;
}

/** Longer texts are refused unread; the longest address has 45 characters. */
const LONGEST = 64;

/** @param dotted gives a dotted tail in canonical form, or undefined when it is not an address */
function parse(text: string, dotted: (tail: string) => string | undefined): Groups | undefined {
  if (!text.includes(":") || text.includes("%") || text.length > LONGEST) return undefined;
  const plain = text.includes(".") ? withoutDots(text, dotted) : text;
  if (plain === undefined) return undefined;
  try {
    // Not isValid first: it parses too, and a list may hold a hundred thousand addresses.
    return ipaddr.IPv6.parse(plain).parts;
  } catch {
    return undefined;
  }
}

/** Writes a dotted tail as two groups: ipaddr.js takes `::1.2.3.4` for the IPv4-mapped address, which it is not. */
function withoutDots(text: string, dotted: (tail: string) => string | undefined): string | undefined {
  const start = text.lastIndexOf(":") + 1;
  const tail = dotted(text.slice(start));
  if (tail === undefined) return undefined;
  const value = ipv4Number(tail);
  return `${text.slice(0, start)}${(value >>> 16).toString(16)}:${(value & 0xffff).toString(16)}`;
}
