import { errorText } from "@fairlead/base";
import type { ApiConnection } from "@fairlead/watch";
import { type ClusterAccess, kubeconfigFiles } from "../cluster/access.ts";
import { connectionOf } from "../cluster/connection.ts";
import { contextNamespace, openKubeconfig } from "../cluster/kubeconfig.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure, UsageError } from "../frame/errors.ts";

/** What an error begins with where a cluster is needed and none is known. */
export const NO_CLUSTER = "no cluster (or give manifests with -f): ";

/** @throws Error when no cluster is known, or its kubeconfig is none */
export async function apiConnection(
  options: ClusterAccess,
  context: Pick<Context, "env" | "warn">,
): Promise<ApiConnection> {
  return connectionOf(await openKubeconfig(options, context));
}

/**
 * The namespace of a service that is named without one: what -n says, else the context's. Of manifests it is default.
 *
 * @throws CommandFailure when the kubeconfig is none
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

/** @throws CommandFailure in place of what the work throws but a UsageError, with `before` in front */
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
