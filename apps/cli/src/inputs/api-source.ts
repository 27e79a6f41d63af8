import { hostname } from "node:os";
import {
  type ApiConnection,
  type ApiSourceOptions,
  createApiSource,
  type ObjectSource,
  type SourceReport,
} from "@fairlead/watch";
import type { ClusterAccess } from "../cluster/access.ts";
import type { Context } from "../frame/context.ts";
import { version } from "../version.ts";
import { apiConnection, NO_CLUSTER, orFailure } from "./cluster-access.ts";

/** The name of the node that is asked about, as its agent would call it. */
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

/** @throws CommandFailure when no cluster is known */
export function connect(options: ClusterAccess, context: Context): Promise<ApiConnection> {
  return orFailure(NO_CLUSTER, apiConnection(options, context));
}

/** What a source says of single objects. */
export function warnOf(report: SourceReport, { warn }: Pick<Context, "warn">): void {
  if (report.type === "badObject") warn(`${report.file ?? report.key ?? report.resource}: ${report.error}`);
  if (report.type === "duplicate") {
    warn(`${report.resource} ${report.key} is in ${report.ignored} and in ${report.used}: the latter is used`);
  }
}
