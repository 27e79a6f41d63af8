import type { KindCluster } from "./kind-cluster.ts";

const CONFIG = "/kind/kube-proxy.conf";

/**
 * What kind gives kube-proxy: a container may not set the machine's connection tracking. In another mode
 * than Fairlead's it would remove Fairlead's rules with its start, before it has its own.
 */
function settings(mode: string): string {
  return JSON.stringify({
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode,
    conntrack: { maxPerCore: 0 },
  });
}

/** Puts kube-proxy on the nodes as kubeadm does, and waits until it runs on each. */
export async function addKubeProxy({ controlPlane, kubectl }: KindCluster, mode: string): Promise<void> {
  const { stdout: own } = await controlPlane.exec(["cat", "/kind/kubeadm.conf"]);
  await controlPlane.exec(["tee", CONFIG], { input: `${own.trimEnd()}\n---\n${settings(mode)}\n` });
  await controlPlane.exec(["kubeadm", "init", "phase", "addon", "kube-proxy", `--config=${CONFIG}`]);
  await kubectl(["-n", "kube-system", "rollout", "status", "daemonset/kube-proxy", "--timeout=180s"], {
    timeoutMs: 200_000,
  });
}
