/**
 * What clusters are made of where registries and release pages can be reached: names and versions, each once. kind
 * itself and the CNI plugin `bridge`, which its nodes lack, are those of versions.ts.
 */

/** @param kubernetes full, `v1.36.4`; kind publishes not every one */
export function nodeImage(kubernetes: string): string {
  return `kindest/node:${kubernetes}`;
}

const GITHUB = "https://raw.githubusercontent.com";
const KUBE_OVN = "v1.16.0";

/** A pod network's own manifest, or the script that applies it. */
export const MANIFESTS = {
  flannel: `${GITHUB}/flannel-io/flannel/v0.28.4/Documentation/kube-flannel.yml`,
  calico: `${GITHUB}/projectcalico/calico/v3.32.2/manifests/calico.yaml`,
  ovn: `${GITHUB}/kubeovn/kube-ovn/refs/tags/${KUBE_OVN}/dist/images/install.sh`,
} as const;

/** kube-ovn's script has the name in parts. */
export const KUBE_OVN_IMAGES: readonly string[] = [`docker.io/kubeovn/kube-ovn:${KUBE_OVN}`];
