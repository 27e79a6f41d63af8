import type { LiveCluster, NodePorts } from "@fairlead/console";
import { agentStatus } from "@fairlead/inspect";
import type { CommandInput } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { configurationOf } from "../../inputs/configuration.ts";
import { interfaceAddresses, stateOf } from "../../node/access.ts";
import { agentPages, portsOf, proxyHere, proxyIn } from "../../node/agent-endpoint.ts";
import { agentsOf, findAgentPod } from "../../node/agent-pods.ts";
import { reportsOf } from "../verify/look.ts";
import { nodeTraffic } from "./node-answers.ts";
import type { consoleOptions } from "./options.ts";

type Values = CommandInput<typeof consoleOptions>["options"];

/**
 * How the console looks at nodes: this one, or others as `--on` does.
 *
 * @param archived whether an archive is in the place of the nodes
 */
export function nodePorts(cluster: LiveCluster, options: Values, context: Context, archived: boolean): NodePorts {
  // A page says itself how long something takes.
  const quiet: Context = { ...context, warn: () => {}, progress: (_what, work) => work() };
  const { live } = options;
  const agents = agentsOf(options, context);
  return {
    // --live is this host.
    reaches: (node) => !live || node === cluster.nodeName,
    kernel: async (node) => {
      const state = await stateOf({ ...options, on: live ? undefined : node }, quiet);
      cluster.setAddresses(node, interfaceAddresses(state));
      if (!live) cluster.setSetup(node, (await configurationOf(options, { on: node }, quiet)).setup);
      const setup = cluster.setupOf(node);
      return cluster.withPlan(node, (planned) => reportsOf(planned, setup, { state }, quiet));
    },
    agent: async (node) => {
      const way = live ? proxyHere(context) : proxyIn(await findAgentPod(node, agents), agents);
      return agentStatus(await agentPages(way, portsOf(options), "health"));
    },
    ...(!archived && { traffic: nodeTraffic(cluster, options, quiet) }),
  };
}
