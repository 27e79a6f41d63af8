/** The loop of a job: what a change concerns is reconciled, one after the other, while this process may write. */

import { type Clock, sleep } from "@fairlead/base";

interface ReconcilerOptions<K> {
  /** What is to be reconciled; a work takes its own key out. */
  readonly dirty: ReadonlySet<K>;
  /** Puts a key there again. */
  readonly again: (key: K) => void;
  /** Rejects where a write failed: it is to be tried again. */
  readonly reconcile: (key: K, mayWrite: () => boolean) => Promise<void>;
  readonly clock: Clock;
  /** Asked before each write: whether this process still leads. */
  readonly mayWrite: () => boolean;
  readonly onError: (key: K, error: unknown, retryMs: number) => void;
}

/** Milliseconds in which changes gather: a rolling update of a Service is few writes, and an endpoint is not late. */
const GATHER = 100;
/** Milliseconds until what failed is tried again: doubled each time. */
const [FIRST_RETRY, LONGEST_RETRY] = [500, 60_000] as const;

/** What fails does not hold up the others. */
export class Reconciler<K> {
  readonly #options: ReconcilerOptions<K>;
  /** Failures in a row. */
  readonly #failures = new Map<K, number>();
  readonly #waiting = new Set<K>();
  #wake: () => void = () => {};

  constructor(options: ReconcilerOptions<K>) {
    this.#options = options;
  }

  changed(): void {
    this.#wake();
  }

  /** Until the signal aborts, or this process may no longer write. The first complete lists have to be in the state. */
  async run(signal: AbortSignal): Promise<void> {
    const { dirty, clock, mayWrite } = this.#options;
    while (!signal.aborted && mayWrite()) {
      const due = [...dirty].filter((key) => !this.#waiting.has(key));
      if (due.length === 0) await this.#idle(signal);
      else await sleep(clock, GATHER, signal);
      for (const key of due) if (!signal.aborted) await this.#reconcile(key, signal);
    }
  }

  #idle(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        signal.removeEventListener("abort", end);
        resolve();
      };
      this.#wake = end;
      signal.addEventListener("abort", end);
    });
  }

  async #reconcile(key: K, signal: AbortSignal): Promise<void> {
    const { reconcile, mayWrite, again } = this.#options;
    const may = () => !signal.aborted && mayWrite();
    try {
      await reconcile(key, may);
      this.#failures.delete(key);
    } catch (error) {
      // The right to write may come back, before anything else makes it dirty.
      if (may()) this.#retry(key, error, signal);
      else again(key);
    }
  }

  #retry(key: K, error: unknown, signal: AbortSignal): void {
    const { clock, again, onError } = this.#options;
    const before = this.#failures.get(key) ?? 0;
    const delay = Math.min(LONGEST_RETRY, FIRST_RETRY * 2 ** before);
    this.#failures.set(key, before + 1);
    this.#waiting.add(key);
    onError(key, error, delay);
    clock.after(delay, () => {
      if (signal.aborted) return;
      this.#waiting.delete(key);
      again(key);
      this.#wake();
    });
  }
}
