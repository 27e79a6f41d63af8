import { errorText, IP_FAMILIES } from "@fairlead/base";
import type { ClusterView, ServiceKey } from "@fairlead/core";
import { type IsolatedService, type NodeFacts, planNode, podFacts } from "@fairlead/inspect";
import { ownershipReport, type PodNetworkFacts, podNetworkOf } from "@fairlead/intake";
import { accessOf } from "../../cluster/access.ts";
import type { CommandInput } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import type { AgentSetup } from "../../inputs/agent.ts";
import { nodeNameOf } from "../../inputs/api-source.ts";
import { clusterNow } from "../../inputs/source.ts";
import type { doctorOptions } from "./options.ts";

type Options = CommandInput<typeof doctorOptions>["options"];

/**
 * Services in networks that nodes do not share, and whether an agent with that configuration serves them.
 *
 * @returns undefined: the cluster cannot be read, which is warned of
 */
export async function isolatedServices(
  setup: AgentSetup,
  options: Options,
  context: Context,
): Promise<NodeFacts["isolated"]> {
  const access = { ...accessOf(options), file: [], node: undefined };
  const { networks, config } = setup;
  const read = (slicesOf: (state: ClusterView) => ReadonlySet<ServiceKey>) =>
    clusterNow(access, context, { slicesOf, networks, config, without: NO_NODE });
  try {
    const first = await read((state) => isolatedIn({ state }, state));
    const services = isolatedIn(podFacts(first), first.state);
    if (services.size === 0) return [];
    // Which of them are in a user-defined network is known only now.
    const cluster = await read(() => services);
    const { planner, pods } = planNode({ ...setup, services, cluster, nodeName: nodeNameOf({ node: undefined }) });
    return ownershipReport(planner.ownerships(), undefined, pods).services.flatMap(
      ({ service, frontends, podNetwork }): readonly IsolatedService[] =>
        podNetwork === undefined ? [] : [{ service, network: podNetwork, isServed: frontends !== "none" }],
    );
  } catch (error) {
    context.warn(
      `cannot read Services; those in networks that nodes do not share are not checked: ${errorText(error)}`,
    );
    return undefined;
  }
}

/**
 * What of all Services, and of this Node, is valid and does other than it seems to ask for.
 *
 * @returns undefined: the cluster cannot be read, which is warned of
 */
export async function serviceNotices(
  setup: AgentSetup,
  options: Options,
  context: Context,
): Promise<NodeFacts["notices"]> {
  const access = { ...accessOf(options), file: [], node: options.on };
  const { networks, config } = setup;
  try {
    const cluster = await clusterNow(access, context, { networks, config });
    return planNode({ ...setup, cluster, nodeName: nodeNameOf({ node: options.on }) }).notices;
  } catch (error) {
    context.warn(`cannot read Services; what they ask for is not checked: ${errorText(error)}`);
    return undefined;
  }
}

/** The owner of a Service does not depend on the node. */
const NO_NODE = new Set(["node"] as const);

function isolatedIn(facts: PodNetworkFacts, state: ClusterView): ReadonlySet<ServiceKey> {
  const isIsolated = (key: ServiceKey) =>
    IP_FAMILIES.some((family) => podNetworkOf(facts, key, family, "none") !== undefined);
  return new Set([...state.keys()].filter(isIsolated));
}
