/** The objects that a command looks at, of manifests or of a cluster. */

import type { AgentConfig } from "@fairlead/config";
import { type NodeState, type Problem, type ServiceKey, serviceOfProblem } from "@fairlead/core";
import {
  type Cluster,
  type NamedService,
  type ReadOptions,
  readCluster,
  readNodes,
  relatedServices,
  type Target,
  whyIgnored,
} from "@fairlead/inspect";
import { selectionOf } from "@fairlead/intake";
import {
  type ApiConnection,
  createManifestsSnapshot,
  createManifestsSource,
  type ObjectSource,
  type SourceReport,
} from "@fairlead/watch";
import { type Forbidden, forbiddenIn, mayNot } from "../cluster/api-error.ts";
import type { sourceOptions } from "../facts/options.ts";
import type { OptionValues } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure, UsageError } from "../frame/errors.ts";
import {
  apiSource,
  connect,
  failureOf,
  failureText,
  lateSignal,
  nodeNameOf,
  orFailure,
  Refused,
  warnOf,
} from "./cluster-access.ts";

type SourceValues = OptionValues<typeof sourceOptions> & { readonly namespace?: string | undefined };

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

/** The objects as they are now, of manifests or of a cluster. What is wrong with single ones is warned of. */
export async function clusterNow(
  options: SourceValues,
  context: Context,
  wanted: ReadRequest = {},
): Promise<ReadCluster> {
  const from = options.file.length > 0 ? fromManifests : fromApi;
  const cluster = await from(options, context, wanted);
  const related = wanted.about && relatedServices(cluster.state, wanted.about);
  warnOfProblems(
    cluster.problems.filter((problem) => concerns(problem, related)),
    context,
  );
  return cluster;
}

/** Of objects that have nothing to do with what is asked about, nothing is said. */
function concerns(problem: Problem, services: ReadonlySet<ServiceKey> | undefined): boolean {
  const service = serviceOfProblem(problem);
  return services === undefined || service === undefined || services.has(service);
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
  { about: _, ...wanted }: ReadRequest,
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
  let rights: Rights = { without: new Set(), namespace: undefined };
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

/** All Nodes of manifests or of a cluster, by their names in their order. */
export async function allNodes(options: SourceValues, context: Context): Promise<ReadonlyMap<string, NodeState>> {
  return readOnce(options, context, (source, signal) =>
    context.progress("reading nodes", () => orFailure("nodes: ", readNodes(source, signal))),
  );
}

/**
 * Why a proxy has nothing to do with a Service, whatever it is labeled; undefined: there is no such Service, or
 * nothing.
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

/** What of a cluster its user may read. */
interface Rights {
  readonly without: NonNullable<ReadOptions["without"]>;
  readonly namespace: string | undefined;
}

interface LessRights {
  readonly rights: Rights;
  /** What the answer lacks, and the rule that is missing. */
  readonly remark: string;
}

/**
 * How to go on where something may not be read.
 *
 * @param asked the namespace that is asked about; undefined: all are
 * @returns undefined: nothing can be done without it
 */
function withoutRight(rights: Rights, forbidden: Forbidden, asked: string | undefined): LessRights | undefined {
  const { resource } = forbidden;
  const { without } = rights;
  if (resource === "nodes" && !without.has("node")) {
    return {
      rights: { ...rights, without: new Set([...without, "node"]) },
      remark: `planned without zone and addresses of the node (--node-address gives them): ${mayNot(forbidden)}`,
    };
  }
  if (resource === "servicecidrs" && !without.has("serviceCIDRs")) {
    return {
      rights: { ...rights, without: new Set([...without, "serviceCIDRs"]) },
      remark: `planned without the ranges of ClusterIPs: ${mayNot(forbidden)}`,
    };
  }
  const ofServices = resource === "services" || resource === "endpointslices";
  if (!ofServices || asked === undefined || rights.namespace !== undefined) return undefined;
  return {
    rights: { ...rights, namespace: asked },
    remark: `only services of namespace ${asked} are known: ${mayNot(forbidden)}`,
  };
}

/**
 * The objects and every change of them, of one manifest path or of a cluster. What goes wrong is warned of and tried
 * again.
 */
export async function liveSource(
  options: OptionValues<typeof sourceOptions>,
  config: Pick<AgentConfig, "serviceNetwork" | "serviceProxyName">,
  context: Context,
  onReport: (report: SourceReport) => void = () => {},
): Promise<ObjectSource> {
  const selection = { nodeName: nodeNameOf(options), ...selectionOf(config) };
  const [path, ...others] = options.file;
  const reported = (report: SourceReport) => {
    onReport(report);
    warnOf(report, context);
  };
  if (path === undefined) {
    return apiSource(await connect(options, context), selection, (report) => {
      if (report.type === "failing") context.warn(failureText(report));
      reported(report);
    });
  }
  if (path === "-" || others.length > 0) throw new UsageError("--file: only one file or folder can be followed");
  return createManifestsSource({ path, ...selection, onReport: reported });
}
