/** A cluster as a source of objects, and what it means when its API server does not answer. */

import { hostname } from "node:os";
import { errorText } from "@fairlead/base";
import {
  type ApiConnection,
  type ApiSourceOptions,
  createApiSource,
  type ObjectSource,
  type SourceReport,
} from "@fairlead/watch";
import { type ClusterAccess, kubeconfigFiles } from "../cluster/access.ts";
import { type Forbidden, forbiddenIn, mayNot } from "../cluster/api-error.ts";
import {
  connectionOf,
  contextNamespace,
  openKubeconfig,
  requestTimeoutOf,
  signalWithin,
} from "../cluster/kubeconfig.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure, UsageError } from "../frame/errors.ts";
import { version } from "../version.ts";

export const NO_CLUSTER = "no cluster (or give manifests with -f): ";

export async function apiConnection(
  options: ClusterAccess,
  context: Pick<Context, "env" | "warn">,
): Promise<ApiConnection> {
  return connectionOf(await openKubeconfig(options, context));
}

/**
 * The namespace of a service that is named without one: what -n says, else the context's. Of manifests it is default.
 */
export async function namespaceOf(
  options: ClusterAccess & { readonly file: readonly string[] } & { readonly namespace: string | undefined },
  { env }: Pick<Context, "env">,
): Promise<string> {
  if (options.namespace !== undefined) return options.namespace;
  if (options.file.length > 0 || kubeconfigFiles(options, env).length === 0) return DEFAULT_NAMESPACE;
  const named = orFailure(NO_CLUSTER, contextNamespace(options, { env }));
  return (await named) ?? DEFAULT_NAMESPACE;
}

const DEFAULT_NAMESPACE = "default";

export async function orFailure<T>(before: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    // It is the command line that is wrong, whatever else is not there.
    if (error instanceof UsageError) throw error;
    const message = errorText(error);
    throw new CommandFailure(before + message, { cause: error });
  }
}

export function nodeNameOf({ node }: { readonly node?: string | undefined }): string {
  return (node ?? hostname()).trim().toLowerCase();
}

/** The objects of a cluster. */
export function apiSource(
  connection: ApiConnection,
  selection: Pick<ApiSourceOptions, "namespace" | "nodeName" | "serviceProxyName" | "slicesManagedBy">,
  onReport: (report: SourceReport) => void,
): ObjectSource {
  return createApiSource({ connection, ...selection, userAgent: `fairlead/${version}`, onReport });
}

export function connect(options: ClusterAccess, context: Context): Promise<ApiConnection> {
  return orFailure(NO_CLUSTER, apiConnection(options, context));
}

export function warnOf(report: SourceReport, { warn }: Pick<Context, "warn">): void {
  if (report.type === "badObject") warn(`${report.file ?? report.key ?? report.resource}: ${report.error}`);
  if (report.type === "duplicate") {
    warn(`${report.resource} ${report.key} is in ${report.ignored} and in ${report.used}: the latter is used`);
  }
}

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
