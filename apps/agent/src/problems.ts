/** Objects whose problems are reported once, and lines about a source. */

import type { Effect, Problem } from "@fairlead/core";
import type { RequestProblem, SourceReport } from "@fairlead/watch";
import type { Fields, Log } from "./log.ts";
import type { SyncFollower } from "./sync/follower.ts";

/** Mistakes of objects without a name that are remembered, for each kind and namespace; others are not reported. */
const MOST_NAMELESS = 100;

const MOST_ALIKE = 3;
/** Lines for one planning step. */
const MOST_OF_STEP = 100;

/** Lines for one object, and for conflicts that are alike; one line more counts the others. */
const MOST_OF_OBJECT = 10;

/** Objects whose problems are remembered; beyond that the oldest are forgotten and may be reported again. */
const MOST_REMEMBERED = 20_000;

/**
 * Reports each problem once for an object, field and value: lists come again and again with the same mistakes in them.
 * All are counted; of many at once some are reported and the others counted.
 */
export class ProblemLog {
  readonly #log: Log;
  readonly #count: (problem: Problem) => void;
  readonly #notify: (fresh: readonly Problem[]) => void;
  /** What was reported of an object when it was last seen. */
  readonly #reported = new Map<string, ReadonlySet<string>>();

  /**
   * @param count called for each that is invalid
   * @param notify called with those of one object, or of one step, that were not there before
   */
  constructor(log: Log, count: (problem: Problem) => void, notify: (fresh: readonly Problem[]) => void = () => {}) {
    this.#log = log;
    this.#count = (problem) => {
      if (problem.effect === undefined) count(problem);
    };
    this.#notify = notify;
  }

  /**
   * All problems that one object has now; those that it had before are not reported again. Objects without a name
   * cannot be distinguished: of all of them each problem is reported once.
   */
  object(
    kind: string,
    namespace: string,
    name: string,
    invalid: readonly Problem[],
    notices: readonly Problem[] = [],
  ): void {
    const problems = [...invalid, ...harmful(notices)];
    const id = `${kind} ${namespace}/${name}`;
    const before = this.#reported.get(id);
    if (problems.length === 0) {
      if (before !== undefined) this.#reported.delete(id);
      return;
    }
    const fresh = problems.filter((problem) => !before?.has(identity(problem)));
    const now = new Set(problems.map(identity));
    if (name !== "" || (before?.size ?? 0) < MOST_NAMELESS) {
      this.#report(fresh);
      this.#notify(fresh);
    }
    this.#remember(id, name === "" ? union(before, now) : now);
  }

  /** The conflicts between objects that a planning step found, each for the first time. */
  step(conflicts: readonly Problem[], notices: readonly Problem[] = []): void {
    const problems = [...conflicts, ...harmful(notices)];
    this.#notify(problems);
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
    this.#log.warn(LINES[problem.effect ?? "invalid"], fields);
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

/** What `explain` and `doctor` say only is no line. */
function harmful(notices: readonly Problem[]): readonly Problem[] {
  return notices.filter(({ effect }) => effect !== "note");
}

const LINES: Readonly<Record<Effect | "invalid", string>> = {
  invalid: "Invalid object; its invalid fields are ignored",
  lost: "Object is valid, and traffic is lost by it",
  open: "Object is valid, and open to more clients than it seems to be",
  note: "Object is valid, and a field has no effect",
};

/** Reports what planning found wrong between objects; it reports each problem once. */
export function problemFollower(problems: ProblemLog): SyncFollower {
  return {
    planned(step) {
      problems.step(step.problems, step.notices);
    },
  };
}

interface SourceLogOptions {
  readonly log: Log;
  /** Why an address is taken for that of a Service; undefined: it is not. */
  readonly serviceAddress: (address: string) => string | undefined;
  /** What stays as it is while the API server cannot be asked. Default: rules. */
  readonly keeps?: string;
}

const PROBLEMS: Readonly<Record<RequestProblem, string>> = {
  unreachable: "API server cannot be reached",
  refused: "API server refuses requests",
  unreadable: "API server answers cannot be read",
};

export function logSource({ log, serviceAddress, keeps = "rules" }: SourceLogOptions): (report: SourceReport) => void {
  return (report) => {
    const { type, ...details } = report;
    const fields = wholeMilliseconds(details);
    switch (type) {
      case "listed":
        return log.verbose(2, "Listed", fields);
      case "retry":
        return log.verbose(4, "Request failed; retrying", fields);
      case "encoding":
        return log.verbose(4, "Encoding of the API server's answers", fields);
      case "failing":
        return log.error(
          `${PROBLEMS[report.problem]}; ${keeps} stay as they are, retrying`,
          failing(report, serviceAddress),
        );
      case "recovered":
        return log.info("API server requests succeed again", fields);
      case "badObject":
        return log.warn("Invalid object ignored", fields);
      case "badFile":
        return log.error("Cannot read manifest file; its last valid objects stay in effect", fields);
      case "duplicate":
        return log.warn("Object defined in several manifests; the last file in name order is used", fields);
      case "skippedKind":
        return log.info("Ignoring objects of unused kind", fields);
      case "waiting":
        return log.error("Manifest path does not exist; waiting for it", fields);
    }
  };
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

type FailingReport = Extract<SourceReport, { readonly type: "failing" }>;

function failing(report: FailingReport, serviceAddress: SourceLogOptions["serviceAddress"]): Fields {
  const { problem, server, address, error, resources, milliseconds } = report;
  const fields = { server, error, milliseconds: Math.round(milliseconds), resources: resources.join(",") };
  const why = problem === "unreachable" ? serviceAddress(address) : undefined;
  if (why === undefined) return fields;
  const hint =
    `${address} ${why}: nothing serves those before this proxy does, so it needs the API server's own address ` +
    "(server in its kubeconfig, --master, or KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT)";
  return { ...fields, hint };
}

function wholeMilliseconds(fields: Fields): Fields {
  const { milliseconds } = fields;
  return typeof milliseconds === "number" ? { ...fields, milliseconds: Math.round(milliseconds) } : fields;
}
