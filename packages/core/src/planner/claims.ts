import { Claimants } from "./claimants.ts";

/** Frontends that one group asks for, as claim keys. */
export interface GroupClaims {
  readonly group: string;
  /** They are its ClusterIPs, which the API server gave it; the others are what a Service's author wrote. */
  readonly allocated: boolean;
  readonly keys: readonly string[];
}

/**
 * Who holds which frontend. Where several groups claim one, the one whose ClusterIP it is holds it (else anybody could
 * take a service's traffic by an external IP), then the one with the smallest id in byte order, in any order of
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

/** Sorts behind every id: they begin with a letter or a digit. */
const WRITTEN = "~";

function forEachClaim(claims: readonly GroupClaims[], visit: (key: string, claimant: string) => void): void {
  for (const { group, allocated, keys } of claims) {
    const claimant = allocated ? group : WRITTEN + group;
    for (const key of keys) visit(key, claimant);
  }
}

function groupOf(claimant: string | undefined): string | undefined {
  return claimant?.startsWith(WRITTEN) ? claimant.slice(WRITTEN.length) : claimant;
}
