import type { ApiConnection, SourceReport } from "@fairlead/watch";
import type { ClusterAccess } from "../cluster/access.ts";
import { type Forbidden, forbiddenIn, mayNot } from "../cluster/forbidden.ts";
import { requestTimeoutOf, signalWithin } from "../cluster/request-timeout.ts";
import { CommandFailure } from "../frame/errors.ts";

/** The API server does not allow it. */
export class Refused extends CommandFailure {
  readonly forbidden: Forbidden;

  constructor(forbidden: Forbidden, server: string) {
    super(`${mayNot(forbidden)} (${server})`);
    this.forbidden = forbidden;
  }
}

/** The API server does not answer, or not as it should. */
export class ServerFailure extends CommandFailure {}

export function failureOf(report: Extract<SourceReport, { type: "failing" }>): CommandFailure {
  const forbidden = forbiddenIn(report.error);
  return forbidden === undefined ? new ServerFailure(failureText(report)) : new Refused(forbidden, report.server);
}

const PROBLEMS = {
  unreachable: "does not answer",
  refused: "refuses requests",
  unreadable: "gives answers that cannot be read",
} as const;

export function failureText({ server, problem, error }: Extract<SourceReport, { type: "failing" }>): string {
  const forbidden = forbiddenIn(error);
  if (forbidden !== undefined) return `${mayNot(forbidden)} (${server})`;
  return `the API server ${server} ${PROBLEMS[problem]}: ${error}`;
}

/** Aborts with the failure when all lists together take longer than the user lets a request take. */
export function lateSignal(options: ClusterAccess, { server }: ApiConnection): readonly AbortSignal[] {
  const ms = requestTimeoutOf(options) ?? Number.POSITIVE_INFINITY;
  const end = signalWithin(ms);
  if (end === undefined) return [];
  const late = new AbortController();
  const failure = new ServerFailure(`the API server ${server} does not answer: no answer within ${ms / 1_000} s`);
  end.addEventListener("abort", () => late.abort(failure));
  return [late.signal];
}
