import { IP_FAMILIES } from "@fairlead/base";
import type { ServicePortGroup } from "@fairlead/core";
import { type ModeFinding, sortedServices } from "./finding.ts";
import { hasVirtualServers, type ModeChange, type ModeSide } from "./sides.ts";

/** Names a scheduler of IPVS for one Service (docs/ipvs.md). */
const SCHEDULER_ANNOTATION = "fairlead.dev/ipvs-scheduler";

/**
 * What comes closest to a scheduler where each connection goes to an endpoint by chance. Weights are all the same: the
 * proxy gives none.
 */
const EQUALS: Readonly<Record<string, string>> = {
  rr: "by chance, with the same shares",
  wrr: "by chance, with the same shares",
  sh: "the annotation fairlead.dev/balance: source-hash on the Service",
  mh: "the annotation fairlead.dev/balance: source-hash on the Service",
};

/** Services whose connections are spread in another way. */
export function schedulerFindings({ before, after }: ModeChange): readonly ModeFinding[] {
  if (!hasVirtualServers(before) || hasVirtualServers(after)) return [];
  const byScheduler = new Map<string, ServicePortGroup[]>();
  for (const group of groupsOf(before)) {
    // Named so, it is spread so in each of the modes that know it.
    if (group.balance !== undefined) continue;
    const scheduler = group.annotations[SCHEDULER_ANNOTATION] ?? before.config.ipvs.scheduler;
    byScheduler.set(scheduler, [...(byScheduler.get(scheduler) ?? []), group]);
  }
  return [...byScheduler].map(([scheduler, groups]) => {
    const services = sortedServices(groups.map(({ service }) => service));
    const count = `scheduler ${scheduler} of ${services.length} ${services.length === 1 ? "service" : "services"}`;
    const equal = EQUALS[scheduler];
    if (scheduler === "rr" || scheduler === "wrr") return { topic: TOPIC, state: "fits", found: `${count}: ${equal}` };
    const found = equal === undefined ? `${count} has no equal: connections go to endpoints by chance` : count;
    const advice =
      equal === undefined ? "keep ipvs mode for as long as you need it: it stays in Fairlead" : `its equal is ${equal}`;
    return { topic: TOPIC, state: "differs", found, advice, services };
  });
}

const TOPIC = "balancing";

/** Services with session affinity: which endpoint a client had is known to the mode that it had it in. */
export function affinityFindings({ before, after }: ModeChange): readonly ModeFinding[] {
  const services = sortedServices(
    groupsOf(before)
      .filter(({ affinitySeconds }) => affinitySeconds !== undefined)
      .map(({ service }) => service),
  );
  if (services.length === 0 || before.planned.mode === after.planned.mode) return [];
  const count = `${services.length} ${services.length === 1 ? "service has" : "services have"} session affinity`;
  const found = `${count}: it is kept, but a mode does not read what another one remembers, so the next connection of a client may go to another endpoint once; open connections stay`;
  return [{ topic: "affinity", state: "differs", found, services }];
}

function groupsOf({ planned }: ModeSide): readonly ServicePortGroup[] {
  return IP_FAMILIES.flatMap((family) => [...planned.planner.plan(family).groups.values()]);
}
