import { factsOf, missingNodeDoubts, type PlannedNode, planNode } from "@fairlead/inspect";
import type { Context } from "../frame/context.ts";
import { type AgentSetup, agentSetup } from "./agent.ts";
import { learnedDoubts } from "./learned.ts";
import type { ClusterValues } from "./planned.ts";
import { allNodes, clusterNow } from "./source.ts";

/** Plans a cluster, read once, for any of its nodes. */
export interface PlannedNodes {
  readonly setup: AgentSetup;
  /** In their order. */
  readonly names: readonly string[];
  /** @param addresses those that the node has */
  plan(node: string, addresses: readonly string[]): PlannedNode;
}

/** @throws CommandFailure when objects cannot be read, or the options are wrong */
export async function plannedNodes(options: ClusterValues, context: Context): Promise<PlannedNodes> {
  const setup = agentSetup(options, context);
  const { serviceCIDRs = false } = factsOf(setup.mode).needs;
  const nodes = await allNodes(options, context);
  const { networks, config } = setup;
  const cluster = await clusterNow(options, context, { serviceCIDRs, networks, config });
  if (cluster.learned !== undefined) for (const line of learnedDoubts(cluster.learned)) context.warn(line);
  return {
    setup,
    names: [...nodes.keys()],
    plan(nodeName, addresses) {
      const node = nodes.get(nodeName);
      const known = { ...cluster, ...(node && { node }) };
      for (const doubt of missingNodeDoubts(known, nodeName)) context.warn(doubt);
      return planNode({ ...setup, cluster: known, nodeName, addresses });
    },
  };
}
