import { hostname } from "node:os";
import type { AgentConfig } from "@fairlead/config";
import type { NodeState, Problem } from "@fairlead/core";
import {
  type Cluster,
  leaveOutOthers,
  type NamedService,
  type ReadOptions,
  readCluster,
  readNodes,
  type Target,
  whyIgnored,
} from "@fairlead/inspect";
import { selectionOf } from "@fairlead/intake";
import {
  type ApiConnection,
  type ApiSourceOptions,
  createApiSource,
  createManifestsSnapshot,
  createManifestsSource,
  type ObjectSource,
  type SourceReport,
} from "@fairlead/watch";
import type { ClusterAccess } from "../cluster/access.ts";
import { type Forbidden, forbiddenIn, mayNot } from "../cluster/forbidden.ts";
import { requestTimeoutOf, signalWithin } from "../cluster/request-timeout.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure, UsageError } from "../frame/errors.ts";
import type { OptionValues } from "../frame/options.ts";
import { version } from "../version.ts";
import { apiConnection, NO_CLUSTER, orFailure } from "./cluster-access.ts";
import type { sourceOptions } from "./cluster-options.ts";
import { ALL_RIGHTS, type Rights, withoutRight } from "./rights.ts";

type SourceValues = OptionValues<typeof sourceOptions> & { readonly namespace?: string | undefined };

/** The name of the node that is asked about, as its agent would call it. */
export function nodeNameOf({ node }: Pick<SourceValues, "node">): string {
  return (node ?? hostname()).trim().toLowerCase();
}

/** Which objects are wanted. */
interface ReadRequest extends Omit<ReadOptions, "without"> {
  /** The only thing that is asked about. */
  readonly about?: Target | undefined;
}

/** Objects, with what is known of nodes alongside the one that is asked about. */
export interface ReadCluster extends Cluster {
  /** Names of other Nodes, in their order; undefined: there may be some. */
  readonly otherNodes: readonly string[] | undefined;
}

/**
 * The objects as they are now, of manifests or of a cluster. What is wrong with single ones is warned of.
 *
 * @throws CommandFailure when they cannot be read
 */
export async function clusterNow(
  options: SourceValues,
  context: Context,
  wanted: ReadRequest = {},
): Promise<ReadCluster> {
  const from = options.file.length > 0 ? fromManifests : fromApi;
  const cluster = await from(options, context, wanted);
  warnOfProblems(cluster.problems, context);
  return cluster;
}

/** The value stands there as JSON already. */
export function warnOfProblems(problems: readonly Problem[], { warn }: Pick<Context, "warn">): void {
  for (const { kind, namespace, name, field, value, reason } of problems) {
    warn(
      [`${kind} ${namespace === "" ? "" : `${namespace}/`}${name}:`, field, value, reason].filter(Boolean).join(" "),
    );
  }
}

async function fromManifests(
  options: SourceValues,
  context: Context,
  { about, ...wanted }: ReadRequest,
): Promise<ReadCluster> {
  const { readStandardInput, signal } = context;
  const otherNodes: string[] = [];
  const unusable: string[] = [];
  const source = createManifestsSnapshot({
    paths: options.file,
    nodeName: nodeNameOf(options),
    ...(wanted.config && selectionOf(wanted.config)),
    readStandardInput,
    onReport: (report) => {
      if (report.type === "badObject" && report.key === undefined) unusable.push(`${report.file}: ${report.error}`);
      else warnOf(report, context);
    },
    onOtherNode: (name) => otherNodes.push(name),
    // What describes networks has nothing to do with one service, and says whose it is.
    ...(about && wanted.networks === undefined && { prepare: (contents) => leaveOutOthers(contents, about) }),
  });
  const cluster = await context.progress(`reading ${options.file.join(", ")}`, () =>
    orFailure("-f ", readCluster(source, signal, wanted)),
  );
  // No server has such objects: a plan without them would be one of something else.
  if (unusable.length > 0) throw new CommandFailure(unusable.join("\n"));
  return { ...cluster, otherNodes: otherNodes.sort() };
}

async function fromApi(options: SourceValues, context: Context, wanted: ReadRequest): Promise<ReadCluster> {
  const connection = await connect(options, context);
  let rights: Rights = ALL_RIGHTS;
  for (;;) {
    try {
      return await readAllowed(connection, options, context, wanted, rights);
    } catch (error) {
      const less =
        error instanceof Refused ? withoutRight(rights, error.forbidden, namespaceIn(options, wanted)) : undefined;
      if (less === undefined) throw error;
      context.warn(less.remark);
      rights = less.rights;
    }
  }
}

/** The namespace that is asked about; undefined: all are. */
function namespaceIn({ namespace }: SourceValues, { about }: ReadRequest): string | undefined {
  return about?.kind === "service" ? about.service.slice(0, about.service.indexOf("/")) : namespace;
}

/** The API server does not allow it. */
export class Refused extends CommandFailure {
  readonly forbidden: Forbidden;

  constructor(forbidden: Forbidden, server: string) {
    super(`${mayNot(forbidden)} (${server})`);
    this.forbidden = forbidden;
  }
}

async function readAllowed(
  connection: ApiConnection,
  options: SourceValues,
  context: Context,
  { about: _, ...wanted }: ReadRequest,
  { without, namespace }: Rights,
): Promise<ReadCluster> {
  const down = new AbortController();
  const selection = { nodeName: nodeNameOf(options), ...(wanted.config && selectionOf(wanted.config)), namespace };
  const source = apiSource(connection, selection, (report) => {
    if (report.type === "failing") down.abort(failureOf(report));
    else warnOf(report, context);
  });
  const tooLong = lateSignal(options, connection);
  const signal = AbortSignal.any([context.signal, down.signal, ...tooLong]);
  try {
    const read = () => readCluster(source, signal, { ...wanted, without });
    return {
      ...(await context.progress(`reading ${connection.server}`, read)),
      otherNodes: without.has("node") ? [] : undefined,
    };
  } catch (error) {
    throw [down.signal, ...tooLong].find(({ aborted }) => aborted)?.reason ?? error;
  }
}

/** Aborts with the failure when all lists together take longer than the user lets a request take. */
function lateSignal(options: ClusterAccess, { server }: ApiConnection): readonly AbortSignal[] {
  const ms = requestTimeoutOf(options) ?? Number.POSITIVE_INFINITY;
  const end = signalWithin(ms);
  if (end === undefined) return [];
  const late = new AbortController();
  const failure = new ServerFailure(`the API server ${server} does not answer: no answer within ${ms / 1_000} s`);
  end.addEventListener("abort", () => late.abort(failure));
  return [late.signal];
}

/** The API server does not answer, or not as it should. */
export class ServerFailure extends CommandFailure {}

function failureOf(report: Extract<SourceReport, { type: "failing" }>): CommandFailure {
  const forbidden = forbiddenIn(report.error);
  return forbidden === undefined ? new ServerFailure(failureText(report)) : new Refused(forbidden, report.server);
}

/**
 * All Nodes of manifests or of a cluster, by their names in their order.
 *
 * @throws CommandFailure when they cannot be read, or may not be
 */
export async function allNodes(options: SourceValues, context: Context): Promise<ReadonlyMap<string, NodeState>> {
  return readOnce(options, context, (source, signal) =>
    context.progress("reading nodes", () => orFailure("nodes: ", readNodes(source, signal))),
  );
}

/**
 * Why a proxy has nothing to do with a Service, whatever it is labelled; undefined: there is no such Service, or
 * nothing.
 *
 * @throws CommandFailure when it cannot be read
 */
export async function whyNotProxied(
  service: NamedService,
  serviceProxyName: string,
  options: SourceValues,
  context: Context,
): Promise<string | undefined> {
  return readOnce(options, { ...context, warn: () => {} }, (source, signal) =>
    orFailure("", whyIgnored(source, service, serviceProxyName, signal)),
  );
}

/** A source for something that is read once; a server that does not answer ends it. */
async function readOnce<T>(
  options: SourceValues,
  context: Context,
  read: (source: ObjectSource, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const down = new AbortController();
  const nodeName = nodeNameOf(options);
  const { file: paths } = options;
  const { readStandardInput, signal } = context;
  const connection = paths.length > 0 ? undefined : await connect(options, context);
  let refused: Refused | undefined;
  const source =
    connection === undefined
      ? createManifestsSnapshot({ paths, nodeName, readStandardInput })
      : apiSource(connection, { nodeName }, (report) => {
          if (report.type === "failing") down.abort(failureOf(report));
          // For a source no failure: it follows what it may read.
          const forbidden = report.type === "retry" ? forbiddenIn(report.error) : undefined;
          if (forbidden !== undefined) refused ??= new Refused(forbidden, connection.server);
        });
  const tooLong = connection === undefined ? [] : lateSignal(options, connection);
  try {
    return await read(source, AbortSignal.any([signal, down.signal, ...tooLong]));
  } catch (error) {
    throw [down.signal, ...tooLong].find(({ aborted }) => aborted)?.reason ?? refused ?? error;
  }
}

/**
 * The objects and every change of them, of one manifest path or of a cluster. What goes wrong is warned of and tried
 * again.
 *
 * @throws CommandFailure when no cluster is known; UsageError when the manifests cannot be followed
 */
export async function liveSource(
  options: SourceValues,
  config: Pick<AgentConfig, "serviceNetwork" | "serviceProxyName">,
  context: Context,
  onReport: (report: SourceReport) => void = () => {},
): Promise<ObjectSource> {
  const selection = { nodeName: nodeNameOf(options), ...selectionOf(config) };
  const [path, ...others] = options.file;
  const told = (report: SourceReport) => {
    onReport(report);
    warnOf(report, context);
  };
  if (path === undefined) {
    return apiSource(await connect(options, context), selection, (report) => {
      if (report.type === "failing") context.warn(failureText(report));
      told(report);
    });
  }
  if (path === "-" || others.length > 0) throw new UsageError("--file: only one file or folder can be followed");
  return createManifestsSource({ path, ...selection, onReport: told });
}

function apiSource(
  connection: ApiConnection,
  selection: Pick<ApiSourceOptions, "namespace" | "nodeName" | "serviceProxyName" | "slicesManagedBy">,
  onReport: (report: SourceReport) => void,
): ObjectSource {
  return createApiSource({ connection, ...selection, userAgent: `fairlead/${version}`, onReport });
}

const PROBLEMS = {
  unreachable: "does not answer",
  refused: "refuses requests",
  unreadable: "gives answers that cannot be read",
} as const;

function failureText({ server, problem, error }: Extract<SourceReport, { type: "failing" }>): string {
  const forbidden = forbiddenIn(error);
  if (forbidden !== undefined) return `${mayNot(forbidden)} (${server})`;
  return `the API server ${server} ${PROBLEMS[problem]}: ${error}`;
}

function connect(options: ClusterAccess, context: Context): Promise<ApiConnection> {
  return orFailure(NO_CLUSTER, apiConnection(options, context));
}

function warnOf(report: SourceReport, { warn }: Context): void {
  if (report.type === "badObject") warn(`${report.file ?? report.key ?? report.resource}: ${report.error}`);
  if (report.type === "duplicate") {
    warn(`${report.resource} ${report.key} stands in ${report.ignored} and in ${report.used}: the latter counts`);
  }
}
