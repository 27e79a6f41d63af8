import type { IPFamily } from "@fairlead/core";

/** A folder of this machine that every node has; nodes may write there unless it is read-only. */
export interface Mount {
  readonly hostPath: string;
  readonly containerPath: string;
  readonly readOnly?: boolean;
}

export interface KindSettings {
  readonly families: readonly IPFamily[];
  readonly workers: number;
  readonly podCIDRs: readonly string[];
  readonly serviceCIDRs: readonly string[];
  readonly mounts: readonly Mount[];
  /** In TOML; default none. */
  readonly containerdPatches?: readonly string[];
}

/** The configuration of `kind create cluster`; JSON is YAML. */
export function kindConfig(settings: KindSettings): string {
  const { families, workers, podCIDRs, serviceCIDRs, mounts: extraMounts } = settings;
  return JSON.stringify({
    kind: "Cluster",
    apiVersion: "kind.x-k8s.io/v1alpha4",
    networking: {
      ipFamily: families.length === 2 ? "dual" : families[0]?.toLowerCase(),
      kubeProxyMode: "none",
      disableDefaultCNI: true,
      podSubnet: podCIDRs.join(","),
      serviceSubnet: serviceCIDRs.join(","),
    },
    kubeadmConfigPatches: [kubeletPatch],
    containerdConfigPatches: settings.containerdPatches ?? [],
    nodes: [
      { role: "control-plane", extraMounts },
      ...Array.from({ length: workers }, (_, index) => ({
        role: "worker",
        // Some of Kubernetes' specs want zones.
        labels: { "topology.kubernetes.io/zone": `zone-${index + 1}` },
        extraMounts,
      })),
    ],
  });
}

/** Control groups of version 1 are what many test machines still have. */
const kubeletPatch = JSON.stringify({
  kind: "KubeletConfiguration",
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  failCgroupV1: false,
  cgroupDriver: "cgroupfs",
});
