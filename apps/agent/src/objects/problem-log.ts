import type { Problem } from "@fairlead/core";
import type { Fields, Log } from "../log/log.ts";

/** Objects whose problems are remembered; beyond that the oldest are forgotten and may be reported again. */
const MOST_REMEMBERED = 20_000;

/** Lines for one object, and for conflicts that are alike; one line more counts the others. */
const MOST_OF_OBJECT = 10;
const MOST_ALIKE = 3;
/** Lines for one planning step. */
const MOST_OF_STEP = 100;
/** Mistakes of objects without a name that are remembered, for each kind and namespace; others are not reported. */
const MOST_NAMELESS = 100;

/**
 * Reports each problem once for an object, field and value: lists come again and again with the same mistakes in them.
 * All are counted; of many at once some are reported and the others counted.
 */
export class ProblemLog {
  readonly #log: Log;
  readonly #count: (problem: Problem) => void;
  /** What was reported of an object when it was last seen. */
  readonly #reported = new Map<string, ReadonlySet<string>>();

  constructor(log: Log, count: (problem: Problem) => void) {
    this.#log = log;
    this.#count = count;
  }

  /**
   * All problems that one object has now; those that it had before are not reported again. Objects without a name
   * cannot be distinguished: of all of them each problem is reported once.
   */
  object(kind: string, namespace: string, name: string, problems: readonly Problem[]): void {
    const id = `${kind} ${namespace}/${name}`;
    const before = this.#reported.get(id);
    if (problems.length === 0) {
      if (before !== undefined) this.#reported.delete(id);
      return;
    }
    const fresh = problems.filter((problem) => !before?.has(identity(problem)));
    const now = new Set(problems.map(identity));
    if (name !== "" || (before?.size ?? 0) < MOST_NAMELESS) this.#report(fresh);
    this.#remember(id, name === "" ? union(before, now) : now);
  }

  /** The conflicts between objects that a planning step found, each for the first time. */
  step(problems: readonly Problem[]): void {
    for (const problem of problems) this.#count(problem);
    let lines = 0;
    let reported = 0;
    for (const alike of groupAlike(problems)) {
      const shown = alike.length > MOST_ALIKE + 1 ? MOST_ALIKE : alike.length;
      const [first] = alike;
      if (first === undefined || lines + shown + 1 > MOST_OF_STEP) break;
      for (const problem of alike.slice(0, shown)) this.#line(problem);
      const { kind, field, value, reason } = first;
      if (shown < alike.length) this.#more({ kind, field, value, reason, more: alike.length - shown });
      lines += shown < alike.length ? shown + 1 : shown;
      reported += alike.length;
    }
    if (reported < problems.length) this.#more({ more: problems.length - reported });
  }

  #report(problems: readonly Problem[]): void {
    for (const problem of problems) this.#count(problem);
    const shown = problems.slice(0, MOST_OF_OBJECT);
    for (const problem of shown) this.#line(problem);
    const [first] = problems;
    if (first === undefined || shown.length === problems.length) return;
    this.#more({ kind: first.kind, object: objectOf(first), more: problems.length - shown.length });
  }

  #line(problem: Problem): void {
    const { kind, field, value, reason } = problem;
    const fields = { kind, object: objectOf(problem), field, value, reason };
    this.#log.warn("Invalid object; its invalid fields are ignored", fields);
  }

  #more(fields: Fields): void {
    this.#log.warn("Further similar problems suppressed", fields);
  }

  #remember(id: string, reported: ReadonlySet<string>): void {
    this.#reported.delete(id);
    this.#reported.set(id, reported);
    if (this.#reported.size <= MOST_REMEMBERED) return;
    const oldest = this.#reported.keys().next();
    if (!oldest.done) this.#reported.delete(oldest.value);
  }
}

function objectOf({ namespace, name }: Problem): string {
  return namespace === "" ? name : `${namespace}/${name}`;
}

function identity({ field, value, reason }: Problem): string {
  return `${field}\0${value}\0${reason}`;
}

function groupAlike(problems: readonly Problem[]): Iterable<readonly Problem[]> {
  const groups = new Map<string, Problem[]>();
  for (const problem of problems) {
    const known = groups.get(identity(problem));
    if (known === undefined) groups.set(identity(problem), [problem]);
    else known.push(problem);
  }
  return groups.values();
}

function union(before: ReadonlySet<string> | undefined, now: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...(before ?? []), ...now].slice(0, MOST_NAMELESS));
}
