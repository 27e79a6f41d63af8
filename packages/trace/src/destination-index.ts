import { type AddressWords, addressRange, ipv4Number } from "@fairlead/base";
import type { Rule } from "@fairlead/netfilter";

/**
 * Dispatch chains have a rule for each address: those of other addresses are not even looked at.
 *
 * @param hostOf the one address that a rule is for; undefined: it is for more, or for none
 * @returns the first rule from a place on that a packet to an address may match; as many as there are rules: none
 */
export function destinationIndex<Rules>(
  rules: readonly Rules[],
  hostOf: (rule: Rules) => AddressWords | undefined,
): (from: number, destination: AddressWords) => number {
  const anywhere: number[] = [];
  const exact = new Map<string, number[]>();
  for (const [index, rule] of rules.entries()) {
    const host = hostOf(rule);
    if (host === undefined) anywhere.push(index);
    else listAt(exact, host.join(".")).push(index);
  }
  return (from, destination) => {
    const own = exact.get(destination.join("."));
    const general = firstFrom(anywhere, from) ?? rules.length;
    return Math.min(general, (own && firstFrom(own, from)) ?? rules.length);
  };
}

export function hostIn({ destination }: Rule): AddressWords | undefined {
  return destination === undefined || destination.negated === true ? undefined : hostOfCIDR(destination.cidr);
}

/** @param text as iptables-save prints it; what is not plain at a glance counts as a rule for more addresses */
export function hostInText(text: string): AddressWords | undefined {
  const cidr = /^-d (\S+\/(?:32|128)) /.exec(text)?.[1];
  if (cidr === undefined) return undefined;
  const word = cidr.endsWith("/32") ? ipv4Number(cidr.slice(0, -3)) : -1;
  return word === -1 ? hostOfCIDR(cidr) : [word];
}

function hostOfCIDR(cidr: string): AddressWords | undefined {
  try {
    const { words, masks } = addressRange(cidr);
    return masks.every((mask) => mask === 0xffffffff) ? words : undefined;
  } catch {
    return undefined;
  }
}

function listAt(lists: Map<string, number[]>, key: string): number[] {
  const known = lists.get(key);
  if (known !== undefined) return known;
  const list: number[] = [];
  lists.set(key, list);
  return list;
}

/** The first number of an ascending list that is not below. */
function firstFrom(ascending: readonly number[], from: number): number | undefined {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ascending[middle] ?? 0) < from) low = middle + 1;
    else high = middle;
  }
  return ascending[low];
}
