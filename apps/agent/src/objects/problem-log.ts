import type { Problem } from "@fairlead/core";
import type { Fields, Log } from "../log/log.ts";

/** Objects whose problems are remembered; beyond that the oldest are forgotten and may be told again. */
const mostRemembered = 20_000;

/** Lines for one object, and for conflicts that are alike; one line more counts the others. */
const mostOfObject = 10;
const mostAlike = 3;
/** Lines for one planning step. */
const mostOfStep = 100;
/** Mistakes of objects without a name that are remembered, for each kind and namespace; others are not told. */
const mostNameless = 100;

/**
 * Tells each problem once for an object, field and value: lists come again and again with the same mistakes in them. All
 * are counted; of many at once some are told and the others numbered.
 */
export class ProblemLog {
  readonly #log: Log;
  readonly #count: (problem: Problem) => void;
  /** What was told of an object when it was last seen. */
  readonly #told = new Map<string, ReadonlySet<string>>();

  constructor(log: Log, count: (problem: Problem) => void) {
    this.#log = log;
    this.#count = count;
  }

  /**
   * All problems that one object has now; those that it had before are not told again. Objects without a name can't be told
   * from one another: of all of them each problem is told once.
   */
  object(kind: string, namespace: string, name: string, problems: readonly Problem[]): void {
    const id = `${kind} ${namespace}/${name}`;
    const before = this.#told.get(id);
    if (problems.length === 0) {
      if (before !== undefined) this.#told.delete(id);
      return;
    }
    const fresh = problems.filter((problem) => !before?.has(identity(problem)));
    const now = new Set(problems.map(identity));
    if (name !== "" || (before?.size ?? 0) < mostNameless) this.#tellOf(fresh);
    this.#remember(id, name === "" ? union(before, now) : now);
  }

  /** The conflicts between objects that a planning step found, each for the first time. */
  step(problems: readonly Problem[]): void {
    for (const problem of problems) this.#count(problem);
    let lines = 0;
    let told = 0;
    for (const alike of groupAlike(problems)) {
      const shown = alike.length > mostAlike + 1 ? mostAlike : alike.length;
      const [first] = alike;
      if (first === undefined || lines + shown + 1 > mostOfStep) break;
      for (const problem of alike.slice(0, shown)) this.#line(problem);
      const { kind, field, value, reason } = first;
      if (shown < alike.length) this.#more({ kind, field, value, reason, more: alike.length - shown });
      lines += shown < alike.length ? shown + 1 : shown;
      told += alike.length;
    }
    if (told < problems.length) this.#more({ more: problems.length - told });
  }

  #tellOf(problems: readonly Problem[]): void {
    for (const problem of problems) this.#count(problem);
    const shown = problems.slice(0, mostOfObject);
    for (const problem of shown) this.#line(problem);
    const [first] = problems;
    if (first === undefined || shown.length === problems.length) return;
    this.#more({ kind: first.kind, object: objectOf(first), more: problems.length - shown.length });
  }

  #line(problem: Problem): void {
    const { kind, field, value, reason } = problem;
    const fields = { kind, object: objectOf(problem), field, value, reason };
    this.#log.warn("Invalid object: skipped what is wrong with it", fields);
  }

  #more(fields: Fields): void {
    this.#log.warn("More of the same was skipped", fields);
  }

  #remember(id: string, told: ReadonlySet<string>): void {
    this.#told.delete(id);
    this.#told.set(id, told);
    if (this.#told.size <= mostRemembered) return;
    const oldest = this.#told.keys().next();
    if (!oldest.done) this.#told.delete(oldest.value);
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
  return new Set([...(before ?? []), ...now].slice(0, mostNameless));
}
