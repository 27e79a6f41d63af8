import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import type { Context } from "../frame/context.ts";

/** Which cluster is meant, as for kubectl. */
export interface ClusterAccess {
  readonly kubeconfig?: string | undefined;
  /** Of the kubeconfig; absent: its current one. */
  readonly context?: string | undefined;
  /** Base URL in the place of the kubeconfig's. */
  readonly server?: string | undefined;
  /** The user to impersonate in the place of the kubeconfig's. */
  readonly as?: string | undefined;
  /** The groups of that user; none: those of the kubeconfig. */
  readonly "as-group"?: readonly string[] | undefined;
  /** How long a request may take, as a duration or in seconds; 0: as long as it likes. */
  readonly "request-timeout"?: string | undefined;
}

export function accessOf({ kubeconfig, context, server, as, ...more }: ClusterAccess) {
  return {
    kubeconfig,
    context,
    server,
    as,
    "as-group": more["as-group"] ?? [],
    "request-timeout": more["request-timeout"],
  } as const;
}

export function accessTexts(options: ClusterAccess): Readonly<Record<string, readonly string[] | undefined>> {
  const entries = Object.entries(accessOf(options)).map(([name, value]): [string, readonly string[] | undefined] => {
    return [name, typeof value === "string" ? [value] : value];
  });
  return Object.fromEntries(entries);
}

/**
 * The kubeconfig files that count, as kubectl chooses them: what is given, else those of `$KUBECONFIG` that there are,
 * else `~/.kube/config`. Empty: there is none.
 */
export function kubeconfigFiles({ kubeconfig }: ClusterAccess, env: Context["env"]): readonly string[] {
  if (kubeconfig !== undefined) return [kubeconfig];
  const listed = (env["KUBECONFIG"] ?? "").split(delimiter).filter((file) => file !== "");
  if (listed.length === 0) return [join(homedir(), ".kube", "config")].filter((file) => existsSync(file));
  const found = listed.filter((file) => existsSync(file));
  // Where none of them is there, reading one says so.
  return found.length === 0 ? listed.slice(0, 1) : found;
}

/** Whether a cluster is named at all, by the options, the environment or the user's own kubeconfig. */
export function hasCluster(options: ClusterAccess, { env }: Pick<Context, "env">): boolean {
  return options.server !== undefined || kubeconfigFiles(options, env).length > 0 || isInPod(env);
}

export function isInPod(env: Context["env"]): boolean {
  return env["KUBERNETES_SERVICE_HOST"] !== undefined;
}
