/** Which service gets an address and port that several ask for. */

import { Heap } from "@fairlead/base";

/**
 * What a claim is worth, the best first: a ClusterIP, from the API server; an address of a load balancer, from its
 * controller; what the Service's author wrote; a node port, also on the node's addresses that its Service chooses; what
 * another network serves, which takes nothing from ours.
 */
export const CLAIM_RANKS = ["allocated", "status", "written", "chosen", "left"] as const;

export type ClaimRank = (typeof CLAIM_RANKS)[number];

/** Frontends that one group asks for, as claim keys. */
export interface GroupClaims {
  readonly group: string;
  readonly rank: ClaimRank;
  /** Of its service, milliseconds since the epoch; undefined: unknown, which is worth less than any. */
  readonly created: number | undefined;
  readonly keys: readonly string[];
}

/**
 * Which group holds which frontend. Where several claim one, the best rank wins (else an external IP could take any
 * service's traffic), then the older service, then the smallest id in byte order, in any order of
 * arrival; when it goes the next one takes it. The cost of a change follows the claims that change, however many claim
 * the same.
 */
export class ClaimIndex {
  /** The only claimant, or all of them. */
  readonly #claimants = new Map<string, string | Claimants>();

  holder(key: string): string | undefined {
    const claimants = this.#claimants.get(key);
    return groupOf(typeof claimants === "string" ? claimants : claimants?.first);
  }

  /** Whether it is the ClusterIP of its holder. */
  isAllocated(key: string): boolean {
    const claimants = this.#claimants.get(key);
    const first = typeof claimants === "string" ? claimants : claimants?.first;
    return first !== undefined && !first.startsWith(WRITTEN);
  }

  /** Replaces the claims of a service; gives the groups, of whatever service, that gained or lost a frontend by it. */
  replace(before: readonly GroupClaims[], after: readonly GroupClaims[]): ReadonlySet<string> {
    const holders = new Map<string, string | undefined>();
    for (const claims of [...before, ...after]) {
      for (const key of claims.keys) holders.set(key, this.holder(key));
    }
    forEachClaim(before, (key, claimant) => this.#remove(key, claimant));
    forEachClaim(after, (key, claimant) => this.#add(key, claimant));
    const moved = new Set<string>();
    for (const [key, old] of holders) {
      const now = this.holder(key);
      if (now === old) continue;
      if (old !== undefined) moved.add(old);
      if (now !== undefined) moved.add(now);
    }
    return moved;
  }

  #add(key: string, added: string): void {
    const known = this.#claimants.get(key);
    if (known === undefined) this.#claimants.set(key, added);
    else if (typeof known !== "string") known.add(added);
    else if (known !== added) this.#claimants.set(key, new Claimants([known, added]));
  }

  #remove(key: string, removed: string): void {
    const known = this.#claimants.get(key);
    if (known === removed) this.#claimants.delete(key);
    if (known === undefined || typeof known === "string") return;
    known.delete(removed);
    if (known.size === 1 && known.first !== undefined) this.#claimants.set(key, known.first);
  }
}

/**
 * The claimants of one thing, with the smallest in byte order readily available: a heap, in which a member that has
 * gone stays until it comes to the top. Ten thousand services may well claim one address.
 */
export class Claimants {
  readonly #members: Set<string>;
  #heap = new Heap(isBefore);

  constructor(members: Iterable<string>) {
    this.#members = new Set(members);
    this.#rebuild();
  }

  get size(): number {
    return this.#members.size;
  }

  get first(): string | undefined {
    return this.#heap.first;
  }

  add(member: string): void {
    if (this.#members.has(member)) return;
    this.#members.add(member);
    this.#heap.push(member);
    // Who comes and goes again and again leaves its traces.
    if (this.#heap.size > 2 * this.#members.size + 16) this.#rebuild();
  }

  delete(member: string): void {
    if (!this.#members.delete(member)) return;
    for (let top = this.first; top !== undefined && !this.#members.has(top); top = this.first) this.#heap.pop();
  }

  /** Without the members that have gone. */
  #rebuild(): void {
    this.#heap = new Heap(isBefore, [...this.#members].sort(byBytes));
  }
}

/** Sorts behind every id: they begin with a letter or a digit. */
const WRITTEN = "~";
/** Digits of a time in milliseconds; later than all of them is unknown. */
const TIME_DIGITS = 16;
const UNKNOWN = "9".repeat(TIME_DIGITS);
const PREFIX = WRITTEN.length + 1 + TIME_DIGITS;

function forEachClaim(claims: readonly GroupClaims[], visit: (key: string, claimant: string) => void): void {
  for (const one of claims) {
    const claimant = claimantOf(one);
    for (const key of one.keys) visit(key, claimant);
  }
}

/**
 * A text that sorts as claims are worth. ClusterIPs, by far the most, are their group's id itself: the API server gives
 * none twice.
 */
function claimantOf({ group, rank, created }: GroupClaims): string {
  if (rank === "allocated") return group;
  const time = created === undefined ? UNKNOWN : String(Math.max(0, created)).padStart(TIME_DIGITS, "0");
  return [WRITTEN, CLAIM_RANKS.indexOf(rank), time, group].join("");
}

function groupOf(claimant: string | undefined): string | undefined {
  return claimant?.startsWith(WRITTEN) ? claimant.slice(PREFIX) : claimant;
}

function isBefore(one: string, other: string): boolean {
  return one < other;
}

function byBytes(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
