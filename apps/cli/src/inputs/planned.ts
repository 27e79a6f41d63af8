import type { ClusterView, ServiceKey } from "@fairlead/core";
import { type PlannedNode, planNode, relatedServices, type Target } from "@fairlead/inspect";
import type { Context } from "../frame/context.ts";
import type { OptionValues } from "../frame/options.ts";
import { type AgentSetup, agentSetup } from "./agent.ts";
import type { clusterOptions } from "./cluster-options.ts";
import { clusterNow, nodeNameOf } from "./source.ts";

const LOOPBACK = ["127.0.0.1", "::1"];

export type ClusterValues = OptionValues<typeof clusterOptions>;

export interface PlannedNodeOptions {
  /** The addresses that the node has, where its kernel is looked at. */
  readonly live?: readonly string[] | undefined;
  /** What alone is asked about: services that have nothing to do with it are not planned. Default: everything. */
  readonly about?: Target;
}

/** What the agent of the node that is asked about makes of the objects that are given, and how it is set up. */
export async function plannedNode(
  options: ClusterValues,
  context: Context,
  { live, about }: PlannedNodeOptions = {},
): Promise<{ readonly planned: PlannedNode; readonly setup: AgentSetup }> {
  const setup = agentSetup(options, context);
  let services: ReadonlySet<ServiceKey> | undefined;
  const related = (state: ClusterView, to: Target) => {
    services = relatedServices(state, to);
    return services;
  };
  const slicesOf = about && ((state: ClusterView) => related(state, about));
  const cluster = await clusterNow(options, context, { slicesOf, about });
  const given = options["node-address"];
  const known = given.length > 0 ? [...LOOPBACK, ...given] : live;
  const addresses = known === undefined ? {} : { addresses: known };
  const planned = planNode({
    ...setup,
    ...addresses,
    ...(services && { services }),
    cluster,
    nodeName: nodeNameOf(options),
  });
  for (const { kind, namespace, name, field, value, reason } of planned.problems) {
    context.warn(`${kind} ${namespace}/${name}: ${field} ${JSON.stringify(value)} ${reason}`);
  }
  return { planned, setup };
}
