/** Where CIDRs can be learned from; `custom` is alongside them. */
export const CIDR_SOURCES = [
  "kube-ovn-subnets",
  "calico-ippools",
  "cilium-pools",
  "cilium-nodes",
  "ovn-kubernetes-nodes",
  "flannel",
  "antrea-ippools",
  "spiderpool",
  "nodes",
] as const;
