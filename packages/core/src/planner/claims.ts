/** The frontends that one group asks for, as claim keys. */
export interface GroupClaims {
  readonly group: string;
  readonly keys: readonly string[];
}

/**
 * Who holds which frontend. Where several groups claim one, the one with the smallest id in byte order holds it, whoever
 * came first; when it goes the next one takes it. The cost of a change follows the claims that change.
 */
export class ClaimIndex {
  /** The only claimant, or all of them in byte order. */
  readonly #claimants = new Map<string, string | readonly string[]>();

  holder(key: string): string | undefined {
    const claimants = this.#claimants.get(key);
    return typeof claimants === "string" ? claimants : claimants?.[0];
  }

  /** Replaces the claims of a service; gives the groups, of whatever service, that gained or lost a frontend by it. */
  replace(before: readonly GroupClaims[], after: readonly GroupClaims[]): ReadonlySet<string> {
    const holders = new Map<string, string | undefined>();
    for (const claims of [...before, ...after]) {
      for (const key of claims.keys) holders.set(key, this.holder(key));
    }
    forEachClaim(before, (key, group) => this.#remove(key, group));
    forEachClaim(after, (key, group) => this.#add(key, group));
    const moved = new Set<string>();
    for (const [key, old] of holders) {
      const now = this.holder(key);
      if (now === old) continue;
      if (old !== undefined) moved.add(old);
      if (now !== undefined) moved.add(now);
    }
    return moved;
  }

  #add(key: string, group: string): void {
    const claimants = this.#list(key);
    if (claimants.includes(group)) return;
    this.#claimants.set(key, claimants.length === 0 ? group : [...claimants, group].sort(byBytes));
  }

  #remove(key: string, group: string): void {
    const left = this.#list(key).filter((claimant) => claimant !== group);
    const [only] = left;
    if (only === undefined) this.#claimants.delete(key);
    else this.#claimants.set(key, left.length === 1 ? only : left);
  }

  #list(key: string): readonly string[] {
    const claimants = this.#claimants.get(key);
    if (claimants === undefined) return [];
    return typeof claimants === "string" ? [claimants] : claimants;
  }
}

function forEachClaim(claims: readonly GroupClaims[], visit: (key: string, group: string) => void): void {
  for (const { group, keys } of claims) {
    for (const key of keys) visit(key, group);
  }
}

function byBytes(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
