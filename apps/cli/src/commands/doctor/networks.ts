import { errorText } from "@fairlead/base";
import { type AgentDecisions, type NamedCIDR, type NetworksFacts, planNode } from "@fairlead/inspect";
import { ownershipReport } from "@fairlead/intake";
import { accessOf } from "../../cluster/access.ts";
import { NO_CALLS, type ReadCalls, readCalls, unanswered } from "../../cluster/called-services.ts";
import { openCluster } from "../../cluster/cluster.ts";
import type { doctorOptions } from "../../facts/nodes.ts";
import type { CommandInput } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import type { AgentSetup } from "../../inputs/agent.ts";
import { nodeNameOf } from "../../inputs/cluster-access.ts";
import { learnedDoubts } from "../../inputs/planned.ts";
import { clusterNow, type ReadCluster } from "../../inputs/source.ts";
import { allOwnership, type NodeOwnership, portsOf } from "../../node/agent-endpoint.ts";
import { agentsOf } from "../../node/agent-pods.ts";

type Options = CommandInput<typeof doctorOptions>["options"];

export interface ClusterNetworks {
  readonly learned: LearnedCIDRs | undefined;
  readonly facts: NetworksFacts;
}

/**
 * Reads the cluster where anything is excluded or learned, with the caller's rights.
 *
 * @returns undefined: nothing is, or it cannot be read, which is warned of
 */
export async function clusterNetworks(
  setup: AgentSetup,
  options: Options,
  context: Context,
): Promise<ClusterNetworks | undefined> {
  const { networks, config, filter } = setup;
  if (networks === undefined && filter.excludeCIDRs.length === 0) return undefined;
  try {
    const calls = await readCalls(openCluster(options, context)).catch((error: unknown) => {
      context.warn(`cannot read which Services the API server calls: ${errorText(error)}`);
      return NO_CALLS;
    });
    // Where the endpoints of other services are is not asked.
    const slicesOf = () => new Set(calls.called.keys());
    const access = { ...accessOf(options), file: [], node: undefined };
    const cluster = await clusterNow(access, context, { slicesOf, networks, config });
    const called = { unanswered: unansweredCalls(setup, calls, cluster), unlisted: calls.unlisted };
    return {
      learned: learnedCIDRs(cluster, context),
      facts: { called, agents: await agentDecisions(options, context) },
    };
  } catch (error) {
    context.warn(`cannot read the networks' objects; learned CIDRs are not checked: ${errorText(error)}`);
    return undefined;
  }
}

function unansweredCalls(setup: AgentSetup, calls: ReadCalls, cluster: ReadCluster) {
  const services = [...calls.called.keys()];
  const { planner } = planNode({ ...setup, services, cluster, nodeName: nodeNameOf({ node: undefined }) });
  return unanswered(calls, ownershipReport(planner.ownerships()).services);
}

async function agentDecisions(options: Options, context: Context): Promise<NetworksFacts["agents"]> {
  try {
    const { metrics } = portsOf({ ...options, "metrics-port": undefined });
    const nodes = await context.progress("asking the agents", () => allOwnership(agentsOf(options, context), metrics));
    return nodes.map(decisionsOf);
  } catch (error) {
    return { problem: errorText(error) };
  }
}

function decisionsOf(one: NodeOwnership): AgentDecisions {
  if ("problem" in one) return one;
  const { services, networks } = one.ownership;
  return { node: one.node, services, cidrs: networks?.cidrs ?? [] };
}

interface LearnedCIDRs {
  readonly cidrs: readonly NamedCIDR[];
  readonly serviceCIDRs: readonly string[];
}

/** The CIDRs that an agent would learn, and those of services; what does not count is warned of. */
function learnedCIDRs(
  { learned, serviceCIDRs = [] }: Pick<ReadCluster, "learned" | "serviceCIDRs">,
  context: Pick<Context, "warn">,
): LearnedCIDRs | undefined {
  if (learned === undefined) return undefined;
  for (const line of learnedDoubts(learned)) context.warn(line);
  const cidrs = learned.report.cidrs.filter(({ stage }) => stage !== "refused");
  return {
    serviceCIDRs,
    cidrs: cidrs.map(({ cidr, side, source, objects }) => {
      return { cidr, use: side === "own" ? "pods" : "excluded pods", source: { id: source, objects } };
    }),
  };
}
