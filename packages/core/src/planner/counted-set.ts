/** A set in which a member stays until it was deleted as often as it was added. */
export class CountedSet<T> {
  readonly #members = new Set<T>();
  /** How often beyond the first, for the few members where it is so. */
  readonly #extra = new Map<T, number>();

  get members(): ReadonlySet<T> {
    return this.#members;
  }

  add(member: T): void {
    if (this.#members.has(member)) this.#extra.set(member, (this.#extra.get(member) ?? 0) + 1);
    else this.#members.add(member);
  }

  delete(member: T): void {
    const extra = this.#extra.get(member) ?? 0;
    if (extra === 0) this.#members.delete(member);
    else if (extra === 1) this.#extra.delete(member);
    else this.#extra.set(member, extra - 1);
  }
}
