/** How long a service has differed, and which one is looked at next. */

import type { Difference, DifferenceTarget } from "./group-differences.ts";

/** One subject that differs, and since when. */
export interface TrackedDifference {
  readonly subject: DifferenceTarget;
  readonly differences: readonly Difference[];
  /** Milliseconds of the clock that `seen` is given. */
  readonly since: number;
  /** It has lasted for longer than a proxy needs for a change. */
  readonly lasting: boolean;
}

/** A subject begins to differ for good, or is as it should be again. */
export interface DifferenceEvent {
  readonly kind: "differs" | "agrees";
  readonly subject: DifferenceTarget;
  readonly differences: readonly Difference[];
}

/**
 * What differs, and for how long. A proxy takes its time for a change: a difference counts when it was there at each
 * look since the grace began, which is with the first look that found it or with the last change of what is wanted.
 */
export class DifferenceTracker {
  readonly #grace: number;
  readonly #found = new Map<string, TrackedDifference>();
  readonly #changed = new Map<string, number>();

  /** @param grace milliseconds */
  constructor(grace: number) {
    this.#grace = grace;
  }

  get all(): readonly TrackedDifference[] {
    return [...this.#found.values()];
  }

  /** Milliseconds until the first of those that differ has done so for the grace; undefined: none has yet to. */
  nextIn(now: number): number | undefined {
    const waiting = this.all.filter(({ lasting }) => !lasting);
    return waiting.length === 0 ? undefined : Math.min(...waiting.map(({ since }) => since + this.#grace - now));
  }

  /** Something else is wanted of a subject from now on. */
  changed(id: string, now: number): void {
    this.#changed.set(id, now);
  }

  /** A subject was looked at; without a difference it agrees. */
  seen(subject: DifferenceTarget, differences: readonly Difference[], now: number): DifferenceEvent | undefined {
    const { id } = subject;
    const before = this.#found.get(id);
    const changed = this.#changed.get(id) ?? Number.NEGATIVE_INFINITY;
    if (now - changed >= this.#grace) this.#changed.delete(id);
    if (differences.length === 0) {
      this.#found.delete(id);
      return before?.lasting === true ? { kind: "agrees", subject, differences } : undefined;
    }
    const since = Math.max(before?.since ?? now, before?.lasting === true ? Number.NEGATIVE_INFINITY : changed);
    const lasting = before?.lasting === true || now - since >= this.#grace;
    this.#found.set(id, { subject, differences, since, lasting });
    return lasting && before?.lasting !== true ? { kind: "differs", subject, differences } : undefined;
  }

  /** Nothing asks for the subject anymore. */
  forget(id: string): DifferenceEvent | undefined {
    const known = this.#found.get(id);
    this.#found.delete(id);
    this.#changed.delete(id);
    return known?.lasting === true ? { kind: "agrees", subject: known.subject, differences: [] } : undefined;
  }
}

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

  /** Starts another round over all of them. */
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
