import { errorText } from "@fairlead/base";
import type { Container } from "../../cluster/pod-runner.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure } from "../../frame/errors.ts";
import { demandServices } from "../../inputs/namespaces.ts";
import type { ClusterValues } from "../../inputs/planned.ts";
import { PlannedNodes } from "../../inputs/planned-nodes.ts";
import { interfaceAddresses } from "../../node/access.ts";
import { eachNode } from "../../node/agent-ownership.ts";
import { agentPods, agentsOf } from "../../node/agent-pods.ts";
import { stateIn } from "../../node/read-state.ts";
import type { FamilyReport } from "./family-report.ts";
import { reportsOf } from "./look.ts";

/** What came of looking at one node. */
export type NodeReport =
  | { readonly node: string; readonly families: readonly FamilyReport[] }
  /** It could not be looked at. */
  | { readonly node: string; readonly problem: string };

/**
 * Compares the kernel of every node with what should be programmed there; a few nodes at once. The cluster is read
 * once.
 *
 * @throws CommandFailure when the cluster or its pods cannot be read
 */
export async function verifyNodes(
  options: ClusterValues & { readonly namespace?: string | undefined },
  context: Context,
): Promise<readonly NodeReport[]> {
  const all = agentsOf(options, context);
  const nodes = await PlannedNodes.of(options, context);
  const { names } = nodes;
  if (names.length === 0) throw new CommandFailure("the cluster has no Nodes: nothing was compared");
  const agents = await agentPods(all);
  const look = async (node: string, pod: Container): Promise<readonly FamilyReport[]> => {
    const state = await stateIn(all.cluster.runner(pod));
    const { planned, setup } = await nodes.plan(node, interfaceAddresses(state));
    demandServices(options.namespace, [planned.state]);
    return reportsOf(planned, setup, { state }, { ...context, progress: (_what, work) => work() });
  };
  let done = 0;
  const report = async (node: string): Promise<NodeReport> => {
    const pod = agents.get(node);
    if (pod === undefined) return { node, problem: "no agent runs there" };
    try {
      const families = await context.progress(`verifying ${node} (${done} of ${names.length} nodes done)`, () =>
        look(node, pod),
      );
      return { node, families };
    } catch (error) {
      return { node, problem: errorText(error) };
    } finally {
      done += 1;
    }
  };
  const reports = await eachNode(names, report);
  for (const line of nodes.remarks) context.warn(line);
  return reports;
}
