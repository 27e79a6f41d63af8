import type { GroupChange, PlanChange } from "@fairlead/core";
import { batches } from "./batches.ts";

/** The rules of a step are held until they are written, some 30 kB for a group of ten endpoints. */
const GROUPS = 1000;

/**
 * Cuts a large change into steps of bounded size that are applied one after the other. What has to happen at once stays
 * together, in the first one: frontends, which may go from one group to another, and what is not a group's. Yields
 * after each group.
 */
export function* stepsOf(change: PlanChange): Generator<void, readonly PlanChange[]> {
  if (change.groups.size <= GROUPS) return [change];
  const endpoints: [string, GroupChange][] = [];
  const frontends = new Map<string, GroupChange>();
  for (const [id, group] of change.groups) {
    if (keepsFrontends(group)) endpoints.push([id, group]);
    else frontends.set(id, group);
    yield;
  }
  const steps = [...batches(endpoints, GROUPS)].map((some) => endpointsAlone(change, some));
  return [{ ...change, groups: frontends }, ...steps];
}

function keepsFrontends({ before, after }: GroupChange): boolean {
  if (before === undefined || after === undefined || before.healthCheckPort !== after.healthCheckPort) return false;
  return JSON.stringify(before.frontends) === JSON.stringify(after.frontends);
}

function endpointsAlone({ family }: PlanChange, groups: Iterable<readonly [string, GroupChange]>): PlanChange {
  return { family, groups: new Map(groups), healthChecks: new Map(), foreignClusterIPs: { added: [], removed: [] } };
}
