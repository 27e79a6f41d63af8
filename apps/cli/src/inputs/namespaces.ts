import type { ClusterView, ForwardingPlan } from "@fairlead/core";
import type { PlannedNode } from "@fairlead/inspect";
import { CommandFailure } from "../frame/errors.ts";

/**
 * Whether a service is in the namespace that is asked for.
 *
 * @param namespace undefined: all are
 * @param service `namespace/name`, perhaps with a port behind it
 */
export function isIn(namespace: string | undefined, service: string): boolean {
  return namespace === undefined || service.startsWith(`${namespace}/`);
}

/**
 * @param states a service in one of them will do
 * @throws CommandFailure where no service is in the namespace that is asked for: nothing would be looked at
 */
export function demandServices(
  namespace: string | undefined,
  states: readonly ClusterView[],
  left: "compared" | "planned" = "compared",
): void {
  if (namespace === undefined) return;
  for (const state of states) {
    for (const key of state.keys()) if (isIn(namespace, key) && state.service(key) !== undefined) return;
  }
  throw new CommandFailure(`no services found in ${namespace} namespace: nothing was ${left}`);
}

/** What of a planned node is printed and compared. */
export type Plans = Pick<PlannedNode, "mode" | "nodeName"> & {
  readonly planner: Pick<PlannedNode["planner"], "plan" | "ownerships">;
};

/**
 * The plans of one namespace's services. They are decided with those of all others, which may claim the same addresses.
 *
 * @param namespace undefined: all are
 */
export function plansIn(namespace: string | undefined, { mode, nodeName, planner, state }: PlannedNode): Plans {
  if (namespace === undefined) return { mode, nodeName, planner };
  const own = (service: string) => isIn(namespace, service);
  const foreign = (address: string) => {
    return [...state.keys()].some((key) => own(key) && state.service(key)?.clusterIPs.includes(address) === true);
  };
  const within = (plan: ForwardingPlan): ForwardingPlan => {
    const groups = new Map([...plan.groups].filter(([, { service }]) => own(service)));
    return {
      family: plan.family,
      node: plan.node,
      groups,
      healthChecks: new Map([...plan.healthChecks].filter(([service]) => own(service))),
      foreignClusterIPs: new Set([...plan.foreignClusterIPs].filter(foreign)),
      endpointCount: Array.from(groups.values()).reduce((sum, { endpointCount }) => sum + endpointCount, 0),
    };
  };
  return {
    mode,
    nodeName,
    planner: {
      plan: (family) => within(planner.plan(family)),
      *ownerships() {
        for (const one of planner.ownerships()) if (own(one.service)) yield one;
      },
    },
  };
}
