/**
 * Names that are held at most before they are due: a megabyte. In a storm of changes a period makes tens of thousands
 * stale.
 */
const MOST = 10_000;

/**
 * Chains of groups and endpoints that are gone. Nothing leads to them, so they may wait: in a large cluster they are
 * deleted at most once in a period, unless they become too many, elsewhere with the change that made them stale.
 */
export class StaleChains {
  readonly #period: number;
  readonly #pending = new Set<string>();
  #deletedAt = Number.NEGATIVE_INFINITY;

  /** @param period milliseconds */
  constructor(period: number) {
    this.#period = period;
  }

  add(chains: Iterable<string>): void {
    for (const chain of chains) this.#pending.add(chain);
  }

  /** They are in use again, or deleted, or not there anymore. */
  forget(chains: Iterable<string>): void {
    for (const chain of chains) this.#pending.delete(chain);
  }

  clear(): void {
    this.#pending.clear();
  }

  /** @returns what is to be deleted at `now` */
  due(now: number, large: boolean): readonly string[] {
    const wait = large && now - this.#deletedAt <= this.#period && this.#pending.size < MOST;
    return wait ? [] : [...this.#pending];
  }

  deleted(chains: readonly string[], now: number): void {
    this.forget(chains);
    if (chains.length > 0) this.#deletedAt = now;
  }
}
