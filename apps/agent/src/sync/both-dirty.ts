import type { DirtyServices, ServiceKey } from "@fairlead/core";

/** What is dirty by one of two takes, or by both. */
export function bothDirty(before: DirtyServices | undefined, after: DirtyServices): DirtyServices {
  if (before === undefined) return after;
  const triggerTimes = new Map<ServiceKey, readonly number[]>(before.triggerTimes);
  for (const [key, times] of after.triggerTimes) triggerTimes.set(key, [...(triggerTimes.get(key) ?? []), ...times]);
  return { services: new Set([...before.services, ...after.services]), triggerTimes };
}
