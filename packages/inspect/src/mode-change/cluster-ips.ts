import type { ModeFinding } from "./finding.ts";
import { factsOfSide, hasTables, hasVirtualServers, type ModeChange } from "./sides.ts";

/** What is sent to addresses of services that no service port has. */
export function unusedFindings({ before, after }: ModeChange): readonly ModeFinding[] {
  if (!hasTables(after) || hasTables(before)) return [];
  const was = hasVirtualServers(before)
    ? "programs of the node that listen on all addresses answer at every ClusterIP, and so does ping"
    : "packets leave the node by its default route";
  const unallocated =
    factsOfSide(after).needs.serviceCIDRs === true ? "; a ClusterIP that no service has is dropped" : "";
  const found = `ports that no service has at a ClusterIP: ${was} now, and are then refused${unallocated}`;
  return [{ topic: "ClusterIPs", state: "differs", found }];
}
