import { ipv4Number, ipv6Groups, mappedIPv4 } from "@fairlead/base";
import type { CIDR } from "./cidr.ts";
import { groupsNumber } from "./number.ts";
import { type Segment, toSegments } from "./segments.ts";

/** Finds the most specific CIDR that an address lies in. The cost hardly grows with the number of CIDRs. */
export interface CIDRTable {
  /** @param address canonical; a text that is not an address lies nowhere */
  find(address: string): CIDR | undefined;
}

export function createTable(cidrs: readonly CIDR[]): CIDRTable {
  // Most clusters exclude nothing, and have an address for each of their pods.
  if (cidrs.length === 0) return { find: () => undefined };
  const findIPv4 = ipv4Search(toSegments(cidrs.filter(({ family }) => family === "IPv4")));
  const findIPv6 = ipv6Search(toSegments(cidrs.filter(({ family }) => family === "IPv6")));
  return {
    find(address) {
      const value = ipv4Number(address);
      if (value !== -1) return findIPv4(value);
      const groups = ipv6Groups(address);
      if (groups === undefined) return undefined;
      const mapped = mappedIPv4(groups);
      return mapped === undefined ? findIPv6(groupsNumber(groups)) : findIPv4(mapped);
    },
  };
}

function ipv4Search(segments: readonly Segment[]): (value: number) => CIDR | undefined {
  const firsts = Uint32Array.from(segments, ({ first }) => Number(first));
  const lasts = Uint32Array.from(segments, ({ last }) => Number(last));
  const starts = startsByUpperHalf(firsts);
  return (value) => {
    const half = value >>> 16;
    const index = lastNotAbove(firsts, value, starts[half], starts[half + 1]);
    return index !== -1 && value <= (lasts[index] ?? -1) ? segments[index]?.cidr : undefined;
  };
}

/**
 * For each upper half of an address how many segments begin before it: the search then has to look only at those that
 * begin in the same /16, which are few however many CIDRs there are.
 */
function startsByUpperHalf(firsts: Uint32Array): Uint32Array {
  const starts = new Uint32Array(2 ** 16 + 1);
  let before = 0;
  for (let half = 0; half < starts.length; half++) {
    while ((firsts[before] ?? Infinity) < half * 2 ** 16) before++;
    starts[half] = before;
  }
  return starts;
}

function ipv6Search(segments: readonly Segment[]): (value: bigint) => CIDR | undefined {
  const firsts = segments.map(({ first }) => first);
  return (value) => {
    const segment = segments[lastNotAbove(firsts, value)];
    return segment !== undefined && value <= segment.last ? segment.cidr : undefined;
  };
}

/**
 * Index of the last of the sorted `values` that is not above `limit`, −1 when there is none; it is not before `from` −
 * 1.
 */
function lastNotAbove<Value extends number | bigint>(
  values: ArrayLike<Value>,
  limit: Value,
  from = 0,
  to = values.length,
): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const value = values[middle];
    if (value !== undefined && value <= limit) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
