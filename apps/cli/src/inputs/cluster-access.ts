import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { errorText } from "@fairlead/base";
import { type ApiConnection, type AuthProvider, contextNamespace, loadConnection } from "@fairlead/watch";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import type { OptionValues } from "../frame/options.ts";
import type { accessOptions } from "./cluster-options.ts";

/** What an error begins with where a cluster is needed and none is known. */
export const NO_CLUSTER = "no cluster (or give manifests with -f): ";

/** Which cluster is meant, as kubectl is told. */
export type ClusterAccess = OptionValues<typeof accessOptions>;

/** Whether a cluster is named at all, by the options, the environment or the user's own kubeconfig. */
export function hasCluster(options: ClusterAccess, { env }: Pick<Context, "env">): boolean {
  return kubeconfigOf(options, env) !== undefined || env["KUBERNETES_SERVICE_HOST"] !== undefined;
}

function kubeconfigOf(options: ClusterAccess, env: Context["env"]): string | undefined {
  return options.kubeconfig ?? env["KUBECONFIG"] ?? defaultKubeconfig();
}

/** @throws Error when no cluster is known, or its kubeconfig is none */
export async function apiConnection(
  options: ClusterAccess,
  { env, warn }: Pick<Context, "env" | "warn">,
): Promise<ApiConnection> {
  const file = kubeconfigOf(options, env);
  // The user runs it, as kubectl: what the own kubeconfig starts is wanted.
  const kubeconfig = file === undefined ? {} : { kubeconfig: file, context: options.context ?? "" };
  return loadConnection({ ...kubeconfig, allowExecCredentials: true, authProvider, onWarning: warn });
}

let opening: Promise<AuthProvider> | undefined;

const authProvider: AuthProvider = async (file, context) => {
  opening ??= import("./auth-provider.ts").then(({ openAuthProvider }) => openAuthProvider());
  const ask = await opening;
  return ask(file, context);
};

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
  const file = options.file.length > 0 ? undefined : kubeconfigOf(options, env);
  if (file === undefined) return DEFAULT_NAMESPACE;
  const named = orFailure(NO_CLUSTER, contextNamespace(file, options.context));
  return (await named) ?? DEFAULT_NAMESPACE;
}

const DEFAULT_NAMESPACE = "default";

function defaultKubeconfig(): string | undefined {
  const file = join(homedir(), ".kube", "config");
  return existsSync(file) ? file : undefined;
}

/** @throws CommandFailure in place of what the work throws, with `before` in front */
export async function orFailure<T>(before: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const message = errorText(error);
    throw new CommandFailure(before + message, { cause: error });
  }
}
