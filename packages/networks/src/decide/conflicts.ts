import { PrefixMap } from "@fairlead/base";
import { countsAs, type Side } from "./claim.ts";
import type { ClaimTable } from "./claim-table.ts";
import type { StaticCIDRs } from "./written.ts";

/** A CIDR in one of the other side, or the same one: the longer prefix decides there. At least one is learned. */
export interface Conflict {
  /** Canonical; the longer one of both. */
  readonly cidr: string;
  /** The side that it is on. */
  readonly side: Side;
  /** The most specific one of the other side around it. */
  readonly within: string;
}

type From = "written" | "learned" | undefined;

/** A CIDR with the sides that it is on, and how that is known. */
interface Entry {
  readonly cidr: string;
  readonly own: From;
  readonly excluded: From;
}

const SIDES = ["own", "excluded"] as const;

/** The conflicts between what counts. A change costs what lies in the CIDR that changes. */
export class Conflicts {
  readonly #claims: ClaimTable;
  readonly #written: Readonly<Record<Side, ReadonlySet<string>>>;
  readonly #found = new Map<string, readonly Conflict[]>();
  #entries: PrefixMap<Entry> = PrefixMap.empty();
  #all: readonly Conflict[] | undefined = [];

  constructor(claims: ClaimTable, { own, excluded }: StaticCIDRs) {
    this.#claims = claims;
    this.#written = { own: new Set(own), excluded: new Set(excluded) };
    for (const cidr of [...own, ...excluded]) this.#put(cidr);
  }

  /** In the order of addresses; the same list while they are the same. */
  get all(): readonly Conflict[] {
    this.#all ??= Array.from(this.#entries.values()).flatMap(({ cidr }) => this.#found.get(cidr) ?? []);
    return this.#all;
  }

  /** @param cidrs those that may have come to count, or count no longer */
  *update(cidrs: Iterable<string>): Generator<void, void> {
    for (const cidr of cidrs) {
      this.#put(cidr);
      this.#look(cidr, this.#entries.get(cidr));
      for (const entry of this.#entries.within(cidr)) {
        this.#look(entry.cidr, entry);
        yield;
      }
    }
  }

  #put(cidr: string): void {
    const entry = { cidr, own: this.#from("own", cidr), excluded: this.#from("excluded", cidr) };
    const none = entry.own === undefined && entry.excluded === undefined;
    this.#entries = none ? this.#entries.without(cidr) : this.#entries.with(cidr, entry);
  }

  #from(side: Side, cidr: string): From {
    if (this.#claims.at(cidr).some(countsAs(side))) return "learned";
    return this.#written[side].has(cidr) ? "written" : undefined;
  }

  #look(cidr: string, entry: Entry | undefined): void {
    const around = entry === undefined ? [] : this.#entries.around(cidr);
    const found = SIDES.flatMap((side) => conflictOf(entry, side, around));
    const before = this.#found.get(cidr) ?? [];
    if (JSON.stringify(found) === JSON.stringify(before)) return;
    if (found.length === 0) this.#found.delete(cidr);
    else this.#found.set(cidr, found);
    this.#all = undefined;
  }
}

/** Of a CIDR that is on both sides only the other network's is in conflict, with ours. */
function conflictOf(entry: Entry | undefined, side: Side, around: readonly Entry[]): readonly Conflict[] {
  if (entry?.[side] === undefined) return [];
  const other = side === "own" ? "excluded" : "own";
  const within = around.findLast((one) => {
    if (one[other] === undefined || (one.cidr === entry.cidr && side === "own")) return false;
    return one[other] === "learned" || entry[side] === "learned";
  });
  return within === undefined ? [] : [{ cidr: entry.cidr, side, within: within.cidr }];
}
