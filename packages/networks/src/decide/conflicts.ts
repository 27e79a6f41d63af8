import { type AddressRange, addressRange, inRange } from "@fairlead/base";
import type { Claim, Side } from "./claim.ts";
import type { StaticCIDRs } from "./resolve.ts";

/** A CIDR inside of one of the other side, or the same one: the longer prefix decides there. At least one is learnt. */
export interface Conflict {
  readonly cidr: string;
  readonly side: Side;
  /** The most specific one of the other side around it. */
  readonly within: string;
}

interface Entry {
  readonly cidr: string;
  readonly side: Side;
  readonly learnt: boolean;
  readonly range: AddressRange;
}

/** In the order of addresses. CIDRs are nested or disjoint, so one pass with a stack of the open ones is enough. */
export function conflicts(written: StaticCIDRs, claims: Iterable<Claim>): readonly Conflict[] {
  const entries = [
    ...written.own.map((cidr) => entry(cidr, "own", false)),
    ...written.excluded.map((cidr) => entry(cidr, "excluded", false)),
    ...Array.from(claims, ({ cidr, side }) => entry(cidr, side, true)),
  ].sort(byAddress);
  const found: Conflict[] = [];
  const open: Entry[] = [];
  for (const inner of entries) {
    for (let top = open.at(-1); top !== undefined && !inRange(top.range, inner.range.words); top = open.at(-1)) {
      open.pop();
    }
    const around = open.findLast(({ side, learnt }) => side !== inner.side && (learnt || inner.learnt));
    if (around !== undefined) found.push({ cidr: inner.cidr, side: inner.side, within: around.cidr });
    open.push(inner);
  }
  return found;
}

function entry(cidr: string, side: Side, learnt: boolean): Entry {
  return { cidr, side, learnt, range: addressRange(cidr) };
}

/** Families apart, then by first address, the wider before the narrower, ours before theirs. */
function byAddress(a: Entry, b: Entry): number {
  return (
    a.range.words.length - b.range.words.length ||
    difference(a.range.words, b.range.words) ||
    difference(a.range.masks, b.range.masks) ||
    Number(a.side === "excluded") - Number(b.side === "excluded")
  );
}

function difference(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((word, i) => word !== b[i]);
  return at === -1 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
}
