/** Ways that are to be walked, and those that lead where one has been before. */

import type { Refusal } from "./route.ts";
import { type List, leavesForGood, type PacketEnd, type Walk, type WalkContext } from "./walk.ts";

/**
 * What need not be compared of ways that leave a chain in which both were since it was entered: what the key has, and
 * which rules of the chain they met.
 */
const ANY_IN_HOOK: ReadonlySet<keyof Walk> = new Set(["source", "destination", "probability", "visits", "index"]);

/** The ways of a packet that are yet to be walked, the last first. */
export class PendingWalks {
  readonly #merged: boolean;
  readonly #walks: Walk[];
  /** Those that others may join. */
  readonly #leaving = new Map<string, Walk[]>();

  constructor(first: Walk, { merged }: Pick<WalkContext, "merged">) {
    this.#walks = [first];
    this.#merged = merged;
  }

  /** Takes a way; one that leaves its chain as another does joins that one, if ways are merged. */
  push(walk: Walk): void {
    if (this.#merged && walk.said !== undefined && leavesForGood(walk.said) && this.#joined(walk)) return;
    this.#walks.push(walk);
  }

  pop(): Walk | undefined {
    const walk = this.#walks.pop();
    // The last that was put on is the first of its key that goes.
    if (walk !== undefined && this.#leaving.size > 0) this.#forget(walk);
    return walk;
  }

  #joined(walk: Walk): boolean {
    const key = walkKey(walk);
    const leaving = this.#leaving.get(key) ?? [];
    const alike = leaving.find((one) => goesOnAlike(one, walk, ANY_IN_HOOK));
    if (alike === undefined) this.#leaving.set(key, [...leaving, walk]);
    else alike.probability += walk.probability;
    return alike !== undefined;
  }

  #forget(walk: Walk): void {
    const key = walkKey(walk);
    const left = this.#leaving.get(key)?.filter((one) => one !== walk) ?? [];
    if (left.length === 0) this.#leaving.delete(key);
    else this.#leaving.set(key, left);
  }
}

/** A walk as it was when it came to a hook, and what became of it. */
interface KnownWay {
  readonly arrival: Walk;
  readonly final: Walk;
  readonly end: End;
}

/**
 * What need not be compared of walks of one key that come to a hook: what the key has, and how they came there, which
 * the way on does not depend on.
 */
const ANY_IN_STAGE: ReadonlySet<keyof Walk> = new Set([
  "source",
  "destination",
  "probability",
  "visits",
  "stage",
  "index",
]);

/**
 * Ways of one packet that were walked to their end. Rules that draw again where nothing was drawn (the endpoint maps of
 * the nftables mode) lead many to one destination; from the next hook on all of them are the same way.
 */
export class KnownWays {
  readonly #known = new Map<string, KnownWay[]>();
  /** Of the walk that is on its way, since it last forked. */
  #arrivals: Walk[] = [];
  #forked = false;

  /** A walk begins, or goes on where another one forked. */
  begin(): void {
    this.#arrivals = [];
  }

  /** From before a fork on there is no one end. */
  fork(): void {
    this.#arrivals = [];
    this.#forked = true;
  }

  /**
   * Takes a walk that has come to a hook to its end, if another one came there alike.
   *
   * @returns undefined: none did; this one may be the first
   */
  follow(walk: Walk): End | undefined {
    if (!this.#forked) return undefined;
    const known = this.#known.get(hookKey(walk))?.find(({ arrival }) => goesOnAlike(arrival, walk, ANY_IN_STAGE));
    if (known === undefined) {
      this.#arrivals.push({ ...walk });
      return undefined;
    }
    const { probability } = walk;
    const visits = appended(walk.visits, known.final.visits, known.arrival.visits);
    Object.assign(walk, known.final, { probability, visits });
    return known.end;
  }

  end(walk: Walk, end: End): void {
    for (const arrival of this.#arrivals) {
      const key = hookKey(arrival);
      const alike = this.#known.get(key) ?? [];
      this.#known.set(key, alike);
      alike.push({ arrival, final: walk, end });
    }
  }
}

/** What ways of one rule differ in, as a rule: those of equal keys are to be compared. */
export function walkKey({ destination, source, mark }: Walk): string {
  return `${sideText(destination)} ${sideText(source)} ${mark}`;
}

/** Whether all but the chances of two ways is equal. */
export function isSameWalk(one: Walk, other: Walk): boolean {
  // The keys of a walk are its own.
  const keys = Object.keys(one) as (keyof Walk)[];
  return keys.every((key) => key === "probability" || isSame(one, other, key));
}

export type End =
  | { readonly kind: "accept" | "drop" }
  | { readonly kind: "reject"; readonly with: string }
  /** No route takes it. */
  | Refusal;

function hookKey(walk: Walk): string {
  return `${walk.hook} ${walkKey(walk)}`;
}

/** A list with what another one has from one place of it on. */
function appended<Item>(
  list: List<Item> | undefined,
  other: List<Item> | undefined,
  from: List<Item> | undefined,
): List<Item> | undefined {
  if (other === undefined || other === from) return list;
  return { item: other.item, before: appended(list, other.before, from) };
}

function isSame(one: Walk, other: Walk, key: keyof Walk): boolean {
  if (key === "destination" || key === "source") return sideText(one[key]) === sideText(other[key]);
  return one[key] === other[key];
}

function sideText({ address, port }: PacketEnd): string {
  return `${address} ${port ?? ""}`;
}

/** Made anew by each walk, and compared by what they say. */
const DATA: ReadonlySet<keyof Walk> = new Set(["routed", "said", "seen", "remembered"]);

/** Whether two ways of one key are equal, but for what does not matter for the way on. */
function goesOnAlike(one: Walk, other: Walk, any: ReadonlySet<keyof Walk>): boolean {
  const keys = Object.keys(one) as (keyof Walk)[];
  return keys.every(
    (key) => any.has(key) || one[key] === other[key] || (DATA.has(key) && isEqual(one[key], other[key])),
  );
}

function isEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
