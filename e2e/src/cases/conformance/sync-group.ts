import { IP_FAMILIES } from "@fairlead/base";
import type { Backend } from "@fairlead/core";
import { PlannedCluster } from "@fairlead/testkit";
import type { CaseGroup } from "./groups.ts";
import { filterFor } from "./iptables-subjects.ts";

/**
 * Takes a kernel through a group's history: the first state as a full sync, each later one as a change, as an agent
 * would have met them.
 *
 * @param backends in the order of `families`
 */
export async function syncGroup(group: CaseGroup, backends: readonly Backend[]): Promise<void> {
  const { options, history } = group;
  const [{ semantics } = {}] = backends;
  if (semantics === undefined) throw new Error("no family to program");
  const cluster = new PlannedCluster({ options, semantics, filter: filterFor(options) });
  for (const [index, state] of history.entries()) {
    const { changes } = cluster.advance(state);
    for (const [at, family] of IP_FAMILIES.entries()) {
      const backend = backends[at];
      const change = changes.get(family);
      if (index === 0) await backend?.sync(cluster.plan(family));
      else if (change) await backend?.apply(cluster.plan(family), change);
    }
  }
}
