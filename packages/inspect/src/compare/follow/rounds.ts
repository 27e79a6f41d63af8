/**
 * Whose turn it is to be looked at: first what changed and what differed last time, then a share of all the others,
 * round after round.
 */
export class Rounds {
  readonly #urgent = new Set<string>();
  #rest: Iterator<string> | undefined;
  #open = false;

  /** Whether a round is under way. */
  get open(): boolean {
    return this.#open;
  }

  get urgent(): boolean {
    return this.#urgent.size > 0;
  }

  /** It comes before all that are in the round. */
  hurry(id: string): void {
    this.#urgent.add(id);
  }

  /** Everybody is looked at once more. */
  begin(ids: Iterable<string>): void {
    this.#rest = ids[Symbol.iterator]();
    this.#open = true;
  }

  /** What has to be looked at now, whatever it costs. */
  takeUrgent(): readonly string[] {
    const all = [...this.#urgent];
    this.#urgent.clear();
    return all;
  }

  /** The next of the round; undefined: it is over. */
  next(): string | undefined {
    const step = this.#rest?.next();
    if (step === undefined || step.done === true) {
      this.#rest = undefined;
      this.#open = false;
      return undefined;
    }
    return step.value;
  }
}
