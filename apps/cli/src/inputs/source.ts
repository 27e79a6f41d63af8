import { existsSync } from "node:fs";
import { homedir, hostname } from "node:os";
import { join } from "node:path";
import { type Cluster, readCluster } from "@fairlead/inspect";
import { createApiSource, createManifestsSnapshot, loadConnection, type SourceReport } from "@fairlead/watch";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import type { OptionValues } from "../frame/options.ts";
import { version } from "../version.ts";
import type { sourceOptions } from "./cluster-options.ts";

type SourceValues = OptionValues<typeof sourceOptions>;

/** The name of the node that is asked about, as its agent would call it. */
export function nodeNameOf({ node }: Pick<SourceValues, "node">): string {
  return (node ?? hostname()).trim().toLowerCase();
}

/**
 * The objects as they are now, of manifests or of a cluster. What is wrong with single ones is warned of.
 *
 * @throws CommandFailure when they cannot be read
 */
export async function clusterNow(options: SourceValues, context: Context): Promise<Cluster> {
  const cluster = await (options.file.length > 0 ? fromManifests(options, context) : fromApi(options, context));
  for (const { kind, namespace, name, field, value, reason } of cluster.problems) {
    context.warn(`${kind} ${namespace}/${name}: ${field} ${JSON.stringify(value)} ${reason}`);
  }
  return cluster;
}

async function fromManifests(options: SourceValues, context: Context): Promise<Cluster> {
  const { readStandardInput, signal } = context;
  const source = createManifestsSnapshot({
    paths: options.file,
    nodeName: nodeNameOf(options),
    readStandardInput,
    onReport: (report) => warnOf(report, context),
  });
  return context.progress(`reading ${options.file.join(", ")}`, () => orFailure("", readCluster(source, signal)));
}

async function fromApi(options: SourceValues, context: Context): Promise<Cluster> {
  const connection = await orFailure("no cluster (or give manifests with -f): ", connect(options, context));
  const down = new AbortController();
  const source = createApiSource({
    connection,
    nodeName: nodeNameOf(options),
    userAgent: `fairlead/${version}`,
    onReport: (report) => {
      if (report.type !== "unreachable") warnOf(report, context);
      else down.abort(new CommandFailure(`the API server ${report.server} does not answer: ${report.error}`));
    },
  });
  const work = () => readCluster(source, AbortSignal.any([context.signal, down.signal]));
  try {
    return await context.progress(`reading ${connection.server}`, work);
  } catch (error) {
    throw down.signal.aborted ? down.signal.reason : error;
  }
}

async function connect(options: SourceValues, { env }: Context) {
  const file = options.kubeconfig ?? env["KUBECONFIG"] ?? defaultKubeconfig();
  // The user runs it, as kubectl: what the own kubeconfig starts is wanted.
  return loadConnection({ ...(file === undefined ? {} : { kubeconfig: file }), allowExecCredentials: true });
}

function defaultKubeconfig(): string | undefined {
  const file = join(homedir(), ".kube", "config");
  return existsSync(file) ? file : undefined;
}

function warnOf(report: SourceReport, { warn }: Context): void {
  if (report.type === "badObject") warn(`${report.file ?? report.key ?? report.resource}: ${report.error}`);
  if (report.type === "duplicate") {
    warn(`${report.resource} ${report.key} stands in ${report.ignored} and in ${report.used}: the latter counts`);
  }
}

async function orFailure<T>(before: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new CommandFailure(before + message, { cause: error });
  }
}
