import { OFF_CLUSTER } from "./frame-nat.ts";

/** Chains of service ports and endpoints in iptables mode, kube-proxy's or ours. */
export function isGroupChainOfIptablesMode(chain: string): boolean {
  return /^KUBE-(?:SVC|SVL|EXT|FW|SEP)-/.test(chain) && chain !== OFF_CLUSTER;
}
