import type { PlanEndpoint } from "@fairlead/core";

/** Endpoints by their slot; undefined: it is empty. */
type Slots = readonly (PlanEndpoint | undefined)[];

export function sameEndpoint(a: PlanEndpoint | undefined, b: PlanEndpoint | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && a.address === b.address && a.port === b.port);
}

/**
 * Endpoints in slots without a hole. Who stays keeps the slot; new ones take those that were freed; holes that are left
 * are filled from the end: as few slots change as can be.
 */
export function denseSlots(before: readonly PlanEndpoint[], wanted: readonly PlanEndpoint[]): readonly PlanEndpoint[] {
  if (before.length === 0) return wanted;
  if (before.length === wanted.length && wanted.every((one, slot) => sameEndpoint(one, before[slot]))) return wanted;
  const kept = keptSlots(before, wanted);
  const dense: (PlanEndpoint | undefined)[] = [...kept];
  for (let hole = dense.indexOf(undefined); hole !== -1; hole = dense.indexOf(undefined, hole)) {
    const last = dense.pop();
    if (hole < dense.length) dense[hole] = last;
  }
  return dense.filter((endpoint) => endpoint !== undefined);
}

/** Who stays keeps the slot; new ones take the first that are free. */
function keptSlots(before: readonly PlanEndpoint[], wanted: readonly PlanEndpoint[]): Slots {
  const missing = new Map(wanted.map((endpoint) => [endpointName(endpoint), endpoint]));
  const slots: (PlanEndpoint | undefined)[] = before.map((endpoint) => {
    const name = endpointName(endpoint);
    const stays = missing.get(name);
    missing.delete(name);
    return stays;
  });
  let at = 0;
  for (const endpoint of missing.values()) {
    while (slots[at] !== undefined) at++;
    slots[at] = endpoint;
  }
  return slots;
}

/** Tells endpoints of a service port apart. */
export function endpointName({ address, port }: PlanEndpoint): string {
  return `${address} ${port}`;
}
