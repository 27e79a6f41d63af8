import type { Cluster, ClusterShape, WholeKubernetes } from "@fairlead/lab/provider/cluster";

export const ROLLOUT_MS = 300_000;

type Kubectl = Pick<WholeKubernetes, "kubectl">;

/** For `Spec.unfit`. */
export function needsKubelets({ provider }: ClusterShape): string | undefined {
  return provider === "kind" ? undefined : "needs kubelets and DaemonSets: --provider kind";
}

/** @throws Error when the cluster is one of namespaces */
export function whole({ kubernetes }: Pick<Cluster, "kubernetes">): WholeKubernetes {
  if (kubernetes === undefined) throw new Error("the cluster has no kubelets and DaemonSets");
  return kubernetes;
}

/** kubectl in the namespace of proxies. */
export function kubectlSystem({ kubectl }: Kubectl, ...args: readonly string[]) {
  return kubectl(["-n", "kube-system", ...args], { timeoutMs: ROLLOUT_MS });
}

/** Resolves when its pods are gone. */
export async function removeProxy(kubernetes: Kubectl, daemonSet: "fairlead" | "kube-proxy"): Promise<void> {
  await kubectlSystem(kubernetes, "delete", "daemonset", daemonSet, "--ignore-not-found", "--cascade=foreground");
}

export async function backToFairlead(cluster: Pick<Cluster, "kubernetes">): Promise<void> {
  const kubernetes = whole(cluster);
  await removeProxy(kubernetes, "kube-proxy");
  await kubernetes.addFairlead();
}
