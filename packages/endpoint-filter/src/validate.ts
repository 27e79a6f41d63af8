/** Checks the operator's lists of CIDRs. */

import { ADDRESS_BITS, addressWords, hostCIDR, IP_FAMILIES, type IPFamily, parseCIDR as parse } from "@fairlead/base";

/**
 * A list of CIDRs with the name under which the operator gave it: `--exclude-cluster-cidr`, `config.conf: clusterCIDR`.
 */
export interface NamedCIDRs {
  /** The flag or the path in the configuration file, for messages. */
  readonly field: string;
  /** CIDRs as the operator wrote them. */
  readonly values: readonly string[];
}

/** A value that cannot be taken: what is wrong with it and what would be right. */
export interface CIDRError {
  /** As of the list that has it. */
  readonly field: string;
  /** The value as it was written. */
  readonly value: string;
  /** What is wrong and what would be right: it follows the field and the value in a sentence. */
  readonly message: string;
}

/** What validation gives: checked CIDRs, or errors. */
export type ExcludeCIDRs =
  | {
      readonly ok: true;
      /** Canonical, each once, in the order given. */
      readonly cidrs: readonly string[];
      /** Lines for the log: nothing is wrong, but it should be known. */
      readonly notes: readonly string[];
    }
  | { readonly ok: false; readonly errors: readonly CIDRError[] };

/** A network with its first and last address as numbers of its family's width. */
interface CIDR {
  readonly family: IPFamily;
  /** Canonical, without host bits: `10.244.0.0/16`, `fd00:244::/48`. */
  readonly text: string;
  readonly length: number;
  readonly first: bigint;
  readonly last: bigint;
}

/**
 * Checks the CIDRs that an operator excludes. Refused are texts that are not a CIDR, host bits, the whole of a family,
 * the IPv4-mapped form, and lists that leave nothing of the cluster's own CIDRs in a family.
 *
 * @param excluded raw texts
 * @param cluster the cluster CIDRs, already canonical
 */
export function parseExcludeCIDRs(excluded: NamedCIDRs, cluster: NamedCIDRs): ExcludeCIDRs {
  const { field } = excluded;
  const errors: CIDRError[] = [];
  const cidrs = new Map<string, CIDR>();
  const notes: string[] = [];
  for (const value of excluded.values) {
    const checked = check(value);
    if (typeof checked === "string") errors.push({ field, value, message: checked });
    else if (cidrs.has(checked.text)) notes.push(`${field}: ${checked.text} is listed twice`);
    else cidrs.set(checked.text, checked);
  }
  const list = [...cidrs.values()];
  for (const family of IP_FAMILIES) {
    const own = clusterCIDRs(cluster, family);
    const overlapping = list.filter((cidr) => own.some((other) => overlaps(cidr, other)));
    if (own.length > 0 && own.every((cidr) => covers(list, cidr)))
      errors.push(nothingLeft(field, overlapping, cluster, own));
    else notes.push(...overlapping.map((cidr) => overlapNote(field, cidr, cluster.field, own)));
  }
  return errors.length > 0 ? { ok: false, errors } : { ok: true, cidrs: list.map(({ text }) => text), notes };
}

/** A CIDR as `parseExcludeCIDRs` takes it, by itself: canonical, or what is wrong with it. */
export function checkCIDR(value: string): { readonly cidr: string } | { readonly problem: string } {
  const checked = check(value);
  return typeof checked === "string" ? { problem: checked } : { cidr: checked.text };
}

/** Whether `cidrs` together contain every address of `target`. */
export function covers(cidrs: readonly CIDR[], target: CIDR): boolean {
  const relevant = cidrs.filter((cidr) => overlaps(cidr, target)).sort((a, b) => compare(a.first, b.first));
  let next = target.first;
  for (const { first, last } of relevant) {
    if (first > next) return false;
    if (last >= next) next = last + 1n;
  }
  return next > target.last;
}

/** A CIDR as it was written: it may have bits set behind its prefix, or be of the IPv4-mapped form. */
interface WrittenCIDR {
  readonly network: CIDR;
  readonly hostBits: boolean;
  /** The network is what `::ffff:10.244.0.0/112` stands for. */
  readonly mapped: boolean;
}

/** @returns undefined when `text` is not an address with a prefix length */
export function parseCIDR(text: string): WrittenCIDR | undefined {
  const written = parse(text);
  if (written === undefined) return undefined;
  const { family, prefixLength: length, hostBits, mapped } = written;
  const first = addressNumber(written.text.slice(0, written.text.indexOf("/")));
  const last = first | ((1n << BigInt(ADDRESS_BITS[family] - length)) - 1n);
  return { network: { family, text: written.text, length, first, last }, hostBits, mapped };
}

const FORM = "must be a CIDR, such as 10.244.0.0/16 or fd00:244::/48";

function check(value: string): CIDR | string {
  const written = parseCIDR(value);
  if (written === undefined) {
    const single = parseCIDR(hostCIDR(value));
    return single === undefined ? FORM : `${FORM}; the single address is ${single.network.text}`;
  }
  const { network, hostBits, mapped } = written;
  if (mapped) return network.length === 0 ? FORM : `is IPv4 written as IPv6; write ${network.text}`;
  if (network.length === 0) {
    return `covers every ${network.family} address, so no service would be proxied here; set the other network's pod CIDR, ${FORM.replace("must be a CIDR, ", "")}`;
  }
  return hostBits ? `has host bits set; write ${network.text}` : network;
}

function clusterCIDRs({ values }: NamedCIDRs, family: IPFamily): CIDR[] {
  return values.flatMap((value) => {
    const network = parseCIDR(value)?.network;
    return network?.family === family ? [network] : [];
  });
}

function nothingLeft(field: string, excluded: readonly CIDR[], cluster: NamedCIDRs, own: readonly CIDR[]): CIDRError {
  const message =
    `covers all of ${cluster.field} ${texts(own)}, so no service would be proxied here; ` +
    `exclude only the other network's CIDR, or add this network's to ${cluster.field}`;
  return { field, value: texts(excluded), message };
}

function overlapNote(field: string, cidr: CIDR, clusterField: string, own: readonly CIDR[]): string {
  const within = own.find((other) => other.first <= cidr.first && cidr.last <= other.last);
  if (within === undefined) return `${field}: ${cidr.text} contains part of ${clusterField} ${texts(own)}`;
  const relation = within.text === cidr.text ? "is one of the CIDRs of" : `is a part of ${within.text} in`;
  return `${field}: ${cidr.text} ${relation} ${clusterField}; traffic from there is not masqueraded`;
}

function texts(cidrs: readonly CIDR[]): string {
  return cidrs.map(({ text }) => text).join(",");
}

function overlaps(a: CIDR, b: CIDR): boolean {
  return a.family === b.family && a.first <= b.last && b.first <= a.last;
}

function compare(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** A canonical address as a number of its family's width. */
function addressNumber(address: string): bigint {
  return addressWords(address).reduce((value, word) => (value << 32n) | BigInt(word), 0n);
}
