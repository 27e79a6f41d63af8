import { type PlannedNode, planNode } from "@fairlead/inspect";
import type { Context } from "../frame/context.ts";
import type { OptionValues } from "../frame/options.ts";
import { type AgentSetup, agentSetup } from "./agent.ts";
import type { clusterOptions } from "./cluster-options.ts";
import { clusterNow, nodeNameOf } from "./source.ts";

const LOOPBACK = ["127.0.0.1", "::1"];

export type ClusterValues = OptionValues<typeof clusterOptions>;

/**
 * What the agent of the node that is asked about makes of the objects that are given, and how it is set up.
 *
 * @param live the addresses that the node has, where its kernel is looked at
 */
export async function plannedNode(
  options: ClusterValues,
  context: Context,
  live?: readonly string[],
): Promise<{ readonly planned: PlannedNode; readonly setup: AgentSetup }> {
  const setup = agentSetup(options, context);
  const cluster = await clusterNow(options, context);
  const given = options["node-address"];
  const known = given.length > 0 ? [...LOOPBACK, ...given] : live;
  const addresses = known === undefined ? {} : { addresses: known };
  const planned = planNode({ ...setup, ...addresses, cluster, nodeName: nodeNameOf(options) });
  for (const { kind, namespace, name, field, value, reason } of planned.problems) {
    context.warn(`${kind} ${namespace}/${name}: ${field} ${JSON.stringify(value)} ${reason}`);
  }
  return { planned, setup };
}
