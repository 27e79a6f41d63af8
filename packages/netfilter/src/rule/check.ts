import { RuleTextError } from "./errors.ts";
import { isTargetName } from "./targets/names.ts";

/** XT_EXTENSION_MAXNAMELEN (linux/netfilter/x_tables.h) less its closing zero. */
export const MAX_CHAIN_NAME_LENGTH = 28;

/** All that a chain may be called, the names of targets among it. */
const GOOD_CHAIN = /^(?![-!])[!#-&(-[\]-~]{1,28}$/;
const NAME = /^[!-~]+$/;
const BREAKS_WORD = /["'\\]/;
const INTERFACE = /^[!-~]{1,15}$/;
const CIDR = /^[0-9a-fA-F.:]+\/\d{1,3}$/;
const PROTOCOL = /^[a-z0-9][a-z0-9._-]*$/;
const VALUE = /^[A-Za-z0-9_.,:[\]/-]+$/;

/** Rules of a chain stand together, and jump to the same chains as those of the next one. */
let lastGood: string | undefined;
let goodBefore: string | undefined;

/**
 * @returns the name
 * @throws RuleTextError for what iptables refuses as a chain name: empty, over 28 characters, the name of a target,
 *   a leading dash or exclamation mark, white space; and for quotes and backslashes, which its text forms can't carry
 */
export function checkChainName(name: string): string {
  if (name === lastGood) return name;
  if (name === goodBefore) return remember(name);
  if (isTargetName(name)) throw new RuleTextError("chain", name, "must not be the name of a target");
  if (GOOD_CHAIN.test(name)) return remember(name);
  if (name.length > MAX_CHAIN_NAME_LENGTH) {
    throw new RuleTextError("chain", name, `must not be longer than ${MAX_CHAIN_NAME_LENGTH} characters`);
  }
  throw new RuleTextError("chain", name, "must be printable ASCII without spaces, quotes, a leading - or !");
}

function remember(name: string): string {
  goodBefore = lastGood;
  lastGood = name;
  return name;
}

/** Lengths that the kernel takes, less the closing zero: XT_RECENT_NAME_LEN, NFACCT_NAME_MAX, IPSET_MAXNAMELEN. */
const MAX_NAME_LENGTH = { recent: 199, nfacct: 31, set: 31 } as const;

/** Names of recent lists, nfacct objects and ipsets: iptables-save prints them bare, so they must be one word. */
export function checkName(field: keyof typeof MAX_NAME_LENGTH, name: string): string {
  const max = MAX_NAME_LENGTH[field];
  if (name.length > max) throw new RuleTextError(field, name, `must not be longer than ${max} characters`);
  if (!NAME.test(name) || BREAKS_WORD.test(name) || name.startsWith("-") || name.startsWith("!")) {
    throw new RuleTextError(field, name, "must be printable ASCII without spaces, quotes, a leading - or !");
  }
  return name;
}

export function checkInterface(name: string): string {
  if (!INTERFACE.test(name) || BREAKS_WORD.test(name) || name.startsWith("-") || name.startsWith("!")) {
    throw new RuleTextError("interface", name, "must be 1 to 15 printable characters, a trailing + for a prefix");
  }
  return name;
}

export function checkCIDR(cidr: string): string {
  if (!CIDR.test(cidr)) throw new RuleTextError("address", cidr, "must be a CIDR with its length, as 10.96.0.1/32");
  return cidr;
}

export function checkProtocol(name: string): string {
  if (!PROTOCOL.test(name)) throw new RuleTextError("protocol", name, "must be a lower-case name or a number");
  return name;
}

/** Values of a closed vocabulary: states, address types, reject types, port ranges, translated addresses. */
export function checkValue(field: string, value: string): string {
  if (!VALUE.test(value) || value.startsWith("-")) throw new RuleTextError(field, value, "must be one plain word");
  return value;
}

export function checkInteger(field: string, value: number, max: number): number {
  if (!Number.isInteger(value) || value < 0 || value > max) {
    throw new RuleTextError(field, String(value), `must be a whole number from 0 to ${max}`);
  }
  return value;
}
