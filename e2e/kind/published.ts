/**
 * What clusters are made of where registries and release pages can be reached: names and versions, each once. kind
 * itself and the CNI plugin `bridge`, which its nodes lack, are those of versions.ts.
 */

/** @param kubernetes full, `v1.36.4`; kind publishes not every one */
export function nodeImage(kubernetes: string): string {
  return `kindest/node:${kubernetes}`;
}

const github = "https://raw.githubusercontent.com";
const kubeOvn = "v1.16.0";

/** A pod network's own manifest, or the script that applies it. */
export const manifests = {
  flannel: `${github}/flannel-io/flannel/v0.28.4/Documentation/kube-flannel.yml`,
  calico: `${github}/projectcalico/calico/v3.32.2/manifests/calico.yaml`,
  ovn: `${github}/kubeovn/kube-ovn/refs/tags/${kubeOvn}/dist/images/install.sh`,
} as const;

/** kube-ovn's script has the name in parts. */
export const kubeOvnImages: readonly string[] = [`docker.io/kubeovn/kube-ovn:${kubeOvn}`];
