import type { Outcome, Visit } from "./outcome.ts";

/**
 * The same outcomes without what rules outside a service proxy's chains make of the source: pod networks masquerade on
 * their own account (flannel does toward other networks), which a proxy neither wants nor hinders.
 */
export function withoutOthersMasquerade(outcomes: readonly Outcome[]): readonly Outcome[] {
  return outcomes.map((outcome) =>
    outcome.masqueraded && !outcome.visits.some(isProxysMasquerade) ? { ...outcome, masqueraded: false } : outcome,
  );
}

function isProxysMasquerade(visit: Visit): boolean {
  if ("nft" in visit) return /^ip6? kube-proxy$/.test(visit.table) && visit.chain === "masquerading";
  return visit.table === "nat" && visit.chain.startsWith("KUBE-") && visit.rule.target?.kind === "masquerade";
}
