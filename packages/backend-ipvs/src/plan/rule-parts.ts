import type { IPFamily } from "@fairlead/core";
import { comment, type Match, type Rule, type Target } from "@fairlead/netfilter";
import { type SetKey, setName } from "./sets.ts";

/** Small makers of the parts that rules are put together from. */

export const RETURN: Target = { kind: "return" };
export const ACCEPT: Target = { kind: "accept" };

type Flag = "src" | "dst";

/** `-m set --match-set NAME dst,dst` */
export function inSet(set: SetKey, family: IPFamily, flags: readonly Flag[]): Match {
  return { kind: "set", name: setName(set, family), flags };
}

/** A rule that asks a set, and says for people what the set is for. */
export function setRule(set: SetKey, family: IPFamily, flags: readonly Flag[], target: Target): Rule {
  const remark = REMARKS[set];
  const matches = remark === undefined ? [] : [comment(remark)];
  return { matches: [...matches, inSet(set, family, flags)], target };
}

const REMARKS: Readonly<Partial<Record<SetKey, string>>> = {
  "KUBE-LOOP-BACK": "Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose",
  "KUBE-CLUSTER-IP": "Kubernetes service cluster ip + port for masquerade purpose",
  "KUBE-EXTERNAL-IP": "Kubernetes service external ip + port for masquerade and filter purpose",
  "KUBE-EXTERNAL-IP-LOCAL": "Kubernetes service external ip + port with externalTrafficPolicy=local",
  "KUBE-LOAD-BALANCER": "Kubernetes service lb portal",
  "KUBE-LOAD-BALANCER-FW": "Kubernetes service load balancer ip + port for load balancer with sourceRange",
  "KUBE-LOAD-BALANCER-LOCAL": "Kubernetes service load balancer ip + port with externalTrafficPolicy=local",
  "KUBE-LOAD-BALANCER-SOURCE-IP": "Kubernetes service load balancer ip + port + source IP for packet filter purpose",
  "KUBE-LOAD-BALANCER-SOURCE-CIDR":
    "Kubernetes service load balancer ip + port + source cidr for packet filter purpose",
  "KUBE-NODE-PORT-TCP": "Kubernetes nodeport TCP port for masquerade purpose",
  "KUBE-NODE-PORT-LOCAL-TCP": "Kubernetes nodeport TCP port with externalTrafficPolicy=local",
  "KUBE-NODE-PORT-UDP": "Kubernetes nodeport UDP port for masquerade purpose",
  "KUBE-NODE-PORT-LOCAL-UDP": "Kubernetes nodeport UDP port with externalTrafficPolicy=local",
  "KUBE-NODE-PORT-SCTP-HASH": "Kubernetes nodeport SCTP port for masquerade purpose with type 'hash ip:port'",
  "KUBE-NODE-PORT-LOCAL-SCTP-HASH":
    "Kubernetes nodeport SCTP port with externalTrafficPolicy=local with type 'hash ip:port'",
  "KUBE-HEALTH-CHECK-NODE-PORT": "Kubernetes health check node port",
};
