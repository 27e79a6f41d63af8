import type { TrafficPolicy } from "./objects.ts";

/** What each policy means; a policy without a row does not compile. */
const POLICIES: Readonly<Record<TrafficPolicy, { readonly onlyLocal: boolean }>> = {
  Cluster: { onlyLocal: false },
  Local: { onlyLocal: true },
};

/** As the API has them: `Cluster`, `Local`. */
export const TRAFFIC_POLICIES = Object.keys(POLICIES) as readonly TrafficPolicy[];

/** Whether packets go only to endpoints on the node that they reach. */
export function onlyLocal(policy: TrafficPolicy): boolean {
  return POLICIES[policy].onlyLocal;
}
