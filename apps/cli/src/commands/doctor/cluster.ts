import { errorText } from "@fairlead/base";
import {
  type AgentDecisions,
  type IsolatedService,
  type NamedCIDR,
  type NetworksFacts,
  type NodeFacts,
  planNode,
} from "@fairlead/inspect";
import { type OwnershipRow, ownershipReport } from "@fairlead/intake";
import { accessOf } from "../../cluster/access.ts";
import { NO_CALLS, readCalls, unanswered } from "../../cluster/called-services.ts";
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

export interface ClusterFacts {
  /** The CIDRs that an agent would learn; undefined: it learns none. */
  readonly learned: LearnedCIDRs | undefined;
  readonly facts: Pick<NodeFacts, "isolated" | "notices" | "networks">;
}

/**
 * What a cluster's objects say with that configuration, read with the caller's rights.
 *
 * @returns undefined: they cannot be read, which is warned of
 */
export async function clusterFacts(
  setup: AgentSetup,
  options: Options,
  context: Context,
): Promise<ClusterFacts | undefined> {
  const { networks, config, filter } = setup;
  const access = { ...accessOf(options), file: [], node: options.on };
  try {
    const cluster = await clusterNow(access, context, { networks, config });
    const { planner, pods, notices } = planNode({ ...setup, cluster, nodeName: nodeNameOf(access) });
    const { services } = ownershipReport(planner.ownerships(), undefined, pods);
    const isolated = services.flatMap(({ service, frontends, podNetwork }): readonly IsolatedService[] =>
      podNetwork === undefined ? [] : [{ service, network: podNetwork, isServed: frontends !== "none" }],
    );
    if (networks === undefined && filter.excludeCIDRs.length === 0) {
      return { learned: undefined, facts: { isolated, notices } };
    }
    const called = await calledFacts(services, options, context);
    const facts = { isolated, notices, networks: { called, agents: await agentDecisions(options, context) } };
    return { learned: learnedCIDRs(cluster, context), facts };
  } catch (error) {
    context.warn(
      "cannot read Services; what they ask for, those in networks that nodes do not share, and learned CIDRs " +
        `are not checked: ${errorText(error)}`,
    );
    return undefined;
  }
}

async function calledFacts(services: readonly OwnershipRow[], options: Options, context: Context) {
  const calls = await readCalls(openCluster(options, context)).catch((error: unknown) => {
    context.warn(`cannot read which Services the API server calls: ${errorText(error)}`);
    return NO_CALLS;
  });
  return { unanswered: unanswered(calls, services), unlisted: calls.unlisted };
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

/** With the CIDRs of services; what does not count is warned of. */
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
