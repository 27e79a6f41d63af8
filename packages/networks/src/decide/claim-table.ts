import { type Claim, claimKey } from "./claim.ts";

/** Called when a claim comes, changes or goes. */
export type ClaimFollower = (before: Claim | undefined, after: Claim | undefined) => void;

/** All claims, by side, source and CIDR; tells what follows from them of each change, so that nobody looks at all. */
export class ClaimTable {
  readonly #claims = new Map<string, Claim>();
  readonly #byCIDR = new Map<string, readonly string[]>();
  readonly #gone = new Set<string>();
  readonly #waiting = new Set<string>();
  readonly #followers: ClaimFollower[] = [];

  /** @param follower hears of what is put from now on */
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

  /** Those that no object says any more. */
  gone(): readonly Claim[] {
    return this.#each(this.#gone);
  }

  /** Those that are pending or held. */
  waiting(): readonly Claim[] {
    return this.#each(this.#waiting);
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
    keep(this.#gone, key, after?.gone !== undefined);
    keep(this.#waiting, key, after?.stage === "pending" || after?.stage === "held");
    for (const follower of this.#followers) follower(before, after);
  }

  #each(keys: Iterable<string>): readonly Claim[] {
    return Array.from(keys).flatMap((key) => this.#claims.get(key) ?? []);
  }
}

function keep(keys: Set<string>, key: string, there: boolean): void {
  if (there) keys.add(key);
  else keys.delete(key);
}
