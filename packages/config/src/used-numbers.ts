/** Marks, rule priorities and routing tables that other programs of a node use. */

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

/**
 * Priorities of routing rules that other programs of a node use by default, by the program. Calico: Felix'
 * WireguardRoutingRulePriority. Cilium: RulePriority… (pkg/datapath/linux/linux_defaults); 100 is the one to which it
 * moves the kernel's rule of table `local`. Istio's rules are in pods.
 */
export const RULE_PRIORITIES: Readonly<Record<string, readonly number[]>> = {
  calico: [99],
  cilium: [1, 9, 10, 20, 100, 109, 110, 111, 112],
};

/**
 * Their routing tables from 256. Cilium: RouteTableToProxy and RouteTableFromProxy. Calico's are 1 to 250, Istio's are
 * in pods.
 */
export const ROUTING_TABLES: Readonly<Record<string, readonly number[]>> = { cilium: [2004, 2005] };
