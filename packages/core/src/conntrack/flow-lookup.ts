import type { IPFamily, Protocol } from "../objects.ts";
import type { ServicePortGroup } from "../plan.ts";
import { claimKey } from "../planner/frontend-spec.ts";
import type { FrontendLookup } from "../planner/lookup.ts";
import { isLeft } from "../planner/treatments.ts";

/**
 * A lookup over some groups, for those who have no planner at hand (it has one ready: `Planner.lookup`). The cost is
 * that of all their frontends.
 */
export function frontendLookup<Group extends ServicePortGroup>(
  family: IPFamily,
  groups: Iterable<Group>,
): FrontendLookup<Group> {
  const byClaim = new Map<string, Group>();
  for (const group of groups) {
    if (group.family !== family) continue;
    for (const frontend of group.frontends) {
      if (!isLeft(frontend)) byClaim.set(claimKey(group.protocol, frontend.address, frontend.port), group);
    }
  }
  return {
    family,
    at: (protocol: Protocol, address: string, port: number) => byClaim.get(claimKey(protocol, address, port)),
    atNodePort: (protocol: Protocol, port: number) => byClaim.get(claimKey(protocol, undefined, port)),
  };
}
