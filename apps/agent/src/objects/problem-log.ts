import type { Problem } from "@fairlead/core";
import type { Log } from "../log/log.ts";

/** Objects whose problems are remembered; beyond that the oldest are forgotten and may be told again. */
const mostRemembered = 20_000;

/** Tells each problem once for an object, field and value: lists come again and again with the same mistakes in them. */
export class ProblemLog {
  readonly #log: Log;
  readonly #count: (problem: Problem) => void;
  /** What was told of an object when it was last seen. */
  readonly #told = new Map<string, ReadonlySet<string>>();

  constructor(log: Log, count: (problem: Problem) => void) {
    this.#log = log;
    this.#count = count;
  }

  /** All problems that one object has now; those that it had before are not told again. */
  object(kind: string, namespace: string, name: string, problems: readonly Problem[]): void {
    const id = `${kind} ${namespace}/${name}`;
    const before = this.#told.get(id);
    if (problems.length === 0) {
      if (before !== undefined) this.#told.delete(id);
      return;
    }
    const now = new Set(problems.map(identity));
    for (const problem of problems) {
      if (!before?.has(identity(problem))) this.tell(problem);
    }
    this.#remember(id, now);
  }

  /** A problem that the caller tells once itself. */
  tell(problem: Problem): void {
    const { kind, namespace, name, field, value, reason } = problem;
    this.#count(problem);
    const object = namespace === "" ? name : `${namespace}/${name}`;
    this.#log.warn("Invalid object: skipped what is wrong with it", { kind, object, field, value, reason });
  }

  #remember(id: string, told: ReadonlySet<string>): void {
    this.#told.delete(id);
    this.#told.set(id, told);
    if (this.#told.size <= mostRemembered) return;
    const oldest = this.#told.keys().next();
    if (!oldest.done) this.#told.delete(oldest.value);
  }
}

function identity({ field, value, reason }: Problem): string {
  return `${field}\0${value}\0${reason}`;
}
