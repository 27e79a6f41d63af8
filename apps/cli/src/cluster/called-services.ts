import { CALLING_RESOURCES, type CalledServices, type CallingResource, calledServices } from "@fairlead/inspect";
import type { OwnershipRow } from "@fairlead/intake";
import { ApiError } from "./api-error.ts";
import { type Cluster, unlessMissing } from "./cluster.ts";

export interface ReadCalls {
  readonly called: CalledServices;
  /** Resources that may not be listed: `apiservices.apiregistration.k8s.io`. */
  readonly unlisted: readonly string[];
}

export const NO_CALLS: ReadCalls = { called: new Map(), unlisted: [] };

export async function readCalls(cluster: Pick<Cluster, "list">): Promise<ReadCalls> {
  const unlisted: string[] = [];
  const lists = new Map<CallingResource, readonly unknown[]>();
  for (const resource of CALLING_RESOURCES) {
    const { apiVersion, plural } = resource;
    try {
      lists.set(resource, (await unlessMissing(cluster.list({ apiVersion, plural }))) ?? []);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 403) throw error;
      unlisted.push(`${plural}.${apiVersion.replace(/\/.*/, "")}`);
    }
  }
  return { called: calledServices(lists), unlisted };
}

/** Those that nodes get no answer of, with the objects that have the API server call them. */
export function unanswered({ called }: ReadCalls, rows: readonly OwnershipRow[]) {
  const silent = rows.filter(({ frontends }) => frontends === "none" || frontends === "all-but-cluster-ip");
  const services = new Set(silent.map(({ service }) => service));
  return Array.from(called, ([service, objects]) => ({ service, objects }))
    .filter(({ service }) => services.has(service))
    .sort((a, b) => (a.service < b.service ? -1 : 1));
}
