import { intervalElements, type SetElement } from "@fairlead/netfilter/nft";
import type { PlanContext } from "./context.ts";

/** ClusterIPs of other networks: not kube-proxy's, and there only while there is such an address. */
export const FOREIGN = "foreign-cluster-ips";

/** Whom another network serves itself at those; there only while both are. */
export const EXCLUDED = "excluded-clients";

type Clients = Pick<PlanContext, "foreignClusterIPs" | "excludedClients">;

/** Whether clients are distinguished at the ClusterIPs of other networks. */
export function tellsClients({ foreignClusterIPs, excludedClients = [] }: Clients): boolean {
  return foreignClusterIPs.length > 0 && excludedClients.length > 0;
}

/** Intervals are no single elements: they are written all together. */
export function excludedElements(context: Clients): readonly SetElement[] {
  return tellsClients(context) ? intervalElements(context.excludedClients ?? []) : [];
}
