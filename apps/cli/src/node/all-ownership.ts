import { errorText } from "@fairlead/base";
import { askAgentIn } from "./agent-endpoint.ts";
import { type AgentOwnership, ownershipOf } from "./agent-ownership.ts";
import { type Agents, agentPods } from "./agent-pods.ts";
import { eachNode } from "./each-node.ts";

/** What the agent of a node says; `problem`: it does not answer, or says something else. */
export type NodeOwnership = { readonly node: string } & (
  | { readonly ownership: AgentOwnership }
  | { readonly problem: string }
);

/**
 * Asks the agents of all nodes, in the order of the nodes' names.
 *
 * @param port of their metricsBindAddress
 * @throws CommandFailure when the pods cannot be listed
 */
export async function allOwnership(agents: Agents, port: number): Promise<readonly NodeOwnership[]> {
  const pods = await agentPods(agents);
  return eachNode([...pods.keys()].sort(), async (node): Promise<NodeOwnership> => {
    const pod = pods.get(node);
    if (pod === undefined) return { node, problem: "no agent runs there" };
    try {
      return { node, ownership: ownershipOf(await askAgentIn(pod, "/ownership", port, agents)) };
    } catch (error) {
      return { node, problem: errorText(error) };
    }
  });
}
