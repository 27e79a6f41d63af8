import type { Frontend, Treatment } from "@fairlead/core";

/** Whether every sender is treated as those outside are. */
export function sameForAll({ pod, node, outside }: Frontend["treatments"]): boolean {
  return alike(pod, outside) && alike(node, outside);
}

export function masquerades(treatment: Treatment): boolean {
  return treatment.verdict === "proxy" && treatment.masquerade;
}

function alike(a: Treatment, b: Treatment): boolean {
  if (a === b) return true;
  if (a.verdict !== "proxy" || b.verdict !== "proxy") return a.verdict === b.verdict;
  return a.set === b.set && a.masquerade === b.masquerade;
}
