import { type Claim, claimKey } from "./claim.ts";

/** Called when a claim comes, changes or goes. */
export type ClaimFollower = (before: Claim | undefined, after: Claim | undefined) => void;

/** All claims, by side, source and CIDR. It calls its followers with each change, so that none looks at all claims. */
export class ClaimTable {
  readonly #claims = new Map<string, Claim>();
  readonly #byCIDR = new Map<string, readonly string[]>();
  readonly #gone = new Set<string>();
  readonly #followers: ClaimFollower[] = [];

  /** @param follower is called with each change from now on */
  follow(follower: ClaimFollower): void {
    this.#followers.push(follower);
  }

  all(): IterableIterator<Claim> {
    return this.#claims.values();
  }

  get(claim: Pick<Claim, "side" | "source" | "cidr">): Claim | undefined {
    return this.byKey(claimKey(claim));
  }

  byKey(key: string): Claim | undefined {
    return this.#claims.get(key);
  }

  /** Those of one CIDR: of either side, a source each. */
  at(cidr: string): readonly Claim[] {
    return this.#each(this.#byCIDR.get(cidr) ?? []);
  }

  /** Those that no object defines anymore. */
  gone(): readonly Claim[] {
    return this.#each(this.#gone);
  }

  put(claim: Claim): void {
    const key = claimKey(claim);
    const before = this.#claims.get(key);
    this.#claims.set(key, claim);
    if (before === undefined) this.#byCIDR.set(claim.cidr, [...(this.#byCIDR.get(claim.cidr) ?? []), key]);
    this.#changed(key, before, claim);
  }

  drop(claim: Claim): void {
    const key = claimKey(claim);
    const before = this.#claims.get(key);
    if (before === undefined) return;
    this.#claims.delete(key);
    const others = (this.#byCIDR.get(claim.cidr) ?? []).filter((one) => one !== key);
    if (others.length > 0) this.#byCIDR.set(claim.cidr, others);
    else this.#byCIDR.delete(claim.cidr);
    this.#changed(key, before, undefined);
  }

  #changed(key: string, before: Claim | undefined, after: Claim | undefined): void {
    if (after?.gone === undefined) this.#gone.delete(key);
    else this.#gone.add(key);
    for (const follower of this.#followers) follower(before, after);
  }

  #each(keys: Iterable<string>): readonly Claim[] {
    return Array.from(keys).flatMap((key) => this.#claims.get(key) ?? []);
  }
}
