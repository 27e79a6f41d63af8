/**
 * Milliseconds of a turn of the event loop that clients get, when others wait for the rest: slices of a sync take 10.
 */
const BUDGET_MS = 2;

export interface TurnsParts {
  readonly nextTurn: (run: () => void) => void;
  /** Milliseconds that never jump. */
  readonly now: () => number;
}

/**
 * Gives work its turn, in small pieces: a few milliseconds in each turn of the event loop, between which everything
 * else is served, syncs first of all. Who comes for the first time goes before those who were served already, so that a
 * probe does not wait for clients that ask and ask.
 */
export class Turns {
  readonly #parts: TurnsParts;
  readonly #first = new Set<() => void>();
  readonly #again = new Set<() => void>();
  #scheduled = false;

  constructor(parts: TurnsParts = { nextTurn: setImmediate, now: () => performance.now() }) {
    this.#parts = parts;
  }

  /**
   * Calls `work` once, never before this returns.
   *
   * @param again whether this client was served before
   */
  ask(work: () => void, again: boolean): void {
    (again ? this.#again : this.#first).add(work);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#parts.nextTurn(() => this.#turn());
  }

  #turn(): void {
    this.#scheduled = false;
    const until = this.#parts.now() + BUDGET_MS;
    do {
      const work = takeFirst(this.#first) ?? takeFirst(this.#again);
      if (work === undefined) return;
      work();
    } while (this.#parts.now() < until);
    if (this.#first.size + this.#again.size > 0) this.#schedule();
  }
}

function takeFirst<T>(set: Set<T>): T | undefined {
  for (const one of set) {
    set.delete(one);
    return one;
  }
  return undefined;
}
