/**
 * Bits of packet and connection marks that other programs of a node use by default, by the program. Calico: Felix'
 * IptablesMarkMask and NftablesMarkMask. Cilium: MARK_MAGIC_HOST_MASK (bpf/lib/common.h). Istio: those of ambient mode
 * (cni/pkg/iptables).
 */
export const MARK_RANGES: Readonly<Record<string, number>> = {
  calico: 0xffff_0000,
  cilium: 0x0f00,
  istio: 0x0fff,
};

/** Kubelet's KUBE-MARK-DROP, which older ones have. */
export const KUBELET_DROP = 0x8000;

/** `0x3000` */
export function markText(mark: number): string {
  return `0x${mark.toString(16)}`;
}
