/**
 * On which side each CIDR that counts is: what was written, and what was learned and is in effect. The same CIDR on
 * both sides: what was written wins over what was learned, then ours over theirs.
 */
import { hostCIDR, PrefixMap } from "@fairlead/base";
import type { ServiceKey } from "@fairlead/core";
import { type CIDRSide, CIDRSides, type NeutralAddresses } from "@fairlead/endpoint-filter";
import type { LearnedCIDR } from "./authority.ts";
import type { ServicesView } from "./services.ts";
import type { Side, StaticCIDRs } from "./settings.ts";

/** A CIDR in one of the other side, or the same one: the longer prefix decides there. At least one is learned. */
export interface Conflict {
  /** Canonical; the longer one of both. */
  readonly cidr: string;
  /** The side that it is on. */
  readonly side: Side;
  /** The most specific one of the other side around it. */
  readonly within: string;
}

/** The CIDRs that count. What is as it was before is the same value as before. */
export interface CountingCIDRs {
  readonly sides: CIDRSides;
  readonly bySide: ReadonlyMap<string, CIDRSide>;
  /** CIDRs that are on another side than before. */
  readonly changed: readonly string[];
  /** All of our own, to recognize local traffic: the written ones first, then the learned ones in order. */
  readonly clusterCIDRs: readonly string[];
  /** In the order of addresses. */
  readonly conflicts: readonly Conflict[];
}

/** Nothing counts: before the first decision. */
export const NO_CIDRS: CountingCIDRs = {
  sides: CIDRSides.none,
  bySide: new Map(),
  changed: [],
  clusterCIDRs: [],
  conflicts: [],
};

export interface WrittenCIDRs {
  readonly lists: StaticCIDRs;
  /** Those that decide for endpoints. */
  readonly sides: CIDRSides;
}

/**
 * In steps of a CIDR.
 *
 * @param learned those in effect
 */
export function* countingCIDRs(
  learned: readonly LearnedCIDR[],
  written: WrittenCIDRs,
  before: CountingCIDRs,
): Generator<void, CountingCIDRs> {
  const bySide = new Map<string, CIDRSide>();
  for (const side of ["own", "excluded"] as const) for (const cidr of written.sides.all(side)) bySide.set(cidr, side);
  for (const side of ["own", "excluded"] as const) {
    for (const one of learned) if (one.side === side && !bySide.has(one.cidr)) bySide.set(one.cidr, side);
  }
  const gone = Array.from(before.bySide.keys()).filter((cidr) => !bySide.has(cidr));
  const moved = Array.from(bySide).flatMap(([cidr, side]) => (before.bySide.get(cidr) === side ? [] : [cidr]));
  const changed = [...gone, ...moved];
  let { sides } = before;
  for (const cidr of changed) {
    sides = sides.with(cidr, bySide.get(cidr));
    yield;
  }
  const own = new Set(learned.filter(({ side }) => side === "own").map(({ cidr }) => cidr));
  const clusterCIDRs = sameOr(before.clusterCIDRs, [...new Set([...written.lists.own, ...[...own].sort()])]);
  return { sides, bySide, changed, clusterCIDRs, conflicts: yield* conflictsOf(learned, written.lists) };
}

/** The conflicts between CIDRs of both sides, in the order of addresses; in steps of a CIDR. */
function* conflictsOf(learned: readonly LearnedCIDR[], written: StaticCIDRs): Generator<void, readonly Conflict[]> {
  const entries = new Map<string, Entry>();
  const add = (cidr: string, side: Side, from: From) =>
    entries.set(cidr, { ...(entries.get(cidr) ?? { cidr }), [side]: from });
  for (const side of SIDES) for (const cidr of written[side]) add(cidr, side, "written");
  for (const { cidr, side } of learned) add(cidr, side, "learned");
  const all = [...entries.values()];
  // Where all are on one side, as in most clusters, there is nothing to look for.
  if (!SIDES.every((side) => all.some((one) => one[side] !== undefined))) return [];
  let map = PrefixMap.empty<Entry>();
  for (const one of all) {
    map = map.with(one.cidr, one);
    yield;
  }
  const conflicts: Conflict[] = [];
  for (const entry of map.values()) {
    const around = map.around(entry.cidr);
    conflicts.push(...SIDES.flatMap((side) => conflictOf(entry, side, around)));
    yield;
  }
  return conflicts;
}

const SIDES = ["own", "excluded"] as const;

type From = "written" | "learned";

/** A CIDR with the sides that it is on, and how that is known. */
type Entry = { readonly cidr: string } & { readonly [side in Side]?: From };

/** Of a CIDR that is on both sides only the other network's is in conflict, with ours. */
function conflictOf(entry: Entry, side: Side, around: readonly Entry[]): readonly Conflict[] {
  if (entry[side] === undefined) return [];
  const other = side === "own" ? "excluded" : "own";
  const within = around.findLast((one) => {
    if (one[other] === undefined || (one.cidr === entry.cidr && side === "own")) return false;
    return one[other] === "learned" || entry[side] === "learned";
  });
  return within === undefined ? [] : [{ cidr: entry.cidr, side, within: within.cidr }];
}

function sameOr(before: readonly string[], after: readonly string[]): readonly string[] {
  return before.length === after.length && before.every((cidr, at) => cidr === after[at]) ? before : after;
}

/**
 * The services with an endpoint in CIDRs that changed, or at an address that nodes gained or lost; in steps of a CIDR.
 *
 * @param cidrs those on another side than before
 */
export function* touchedBy(
  cidrs: readonly string[],
  nodesBefore: NeutralAddresses,
  nodes: NeutralAddresses,
  services: ServicesView,
): Generator<void, Set<ServiceKey>> {
  const touched = new Set<ServiceKey>();
  for (const cidr of [...cidrs, ...differing(nodesBefore, nodes).map(hostCIDR)]) {
    for (const key of services.within(cidr)) touched.add(key);
    yield;
  }
  return touched;
}

function differing(before: NeutralAddresses, after: NeutralAddresses): readonly string[] {
  if (before === after) return [];
  const addresses = new Set([...before.keys(), ...after.keys()]);
  return [...addresses].filter((address) => nodesAt(before, address) !== nodesAt(after, address));
}

function nodesAt(neutral: NeutralAddresses, address: string): string {
  const nodes = neutral.get(address) ?? [];
  return nodes === "any" ? " any" : [...nodes].sort().join();
}
