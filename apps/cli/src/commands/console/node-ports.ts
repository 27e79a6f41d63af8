import type { LiveCluster, NodePorts } from "@fairlead/console";
import { agentStatus } from "@fairlead/inspect";
import type { CommandInput } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import type { AgentSetup } from "../../inputs/agent.ts";
import { runnerFor } from "../../node/access.ts";
import { askAgent } from "../../node/agent-endpoint.ts";
import { nodeAddresses } from "../../node/kernel-state.ts";
import { reportsOf } from "../verify/look.ts";
import type { consoleOptions } from "./options.ts";

type Values = CommandInput<typeof consoleOptions>["options"];

/** Of the agent's healthzBindAddress. */
const HEALTH_PORT = 10_256;

/** How the console looks at nodes: this one, or others as `--on` does. */
export function nodePorts(cluster: LiveCluster, setup: AgentSetup, options: Values, context: Context): NodePorts {
  // A page says itself how long something takes.
  const quiet: Context = { ...context, warn: () => {}, progress: (_what, work) => work() };
  const { kubeconfig, context: named, live } = options;
  const reached = { kubeconfig, context: named };
  const on = (node: string) => (live ? undefined : node);
  return {
    // --live is this host.
    reaches: (node) => !live || node === cluster.nodeName,
    kernel: async (node) => {
      const runner = await runnerFor({ on: on(node), ...reached }, quiet);
      cluster.setAddresses(node, await nodeAddresses(runner));
      return cluster.withPlan(node, (planned) => reportsOf(planned, setup, { rules: undefined }, { ...quiet, runner }));
    },
    agent: async (node) => {
      const at = { on: on(node), cluster: reached };
      const port = Number(options["metrics-port"] ?? 10_249);
      // Without this one nothing is known; the others only leave something out.
      const metrics = await askAgent("/metrics", { ...at, port }, quiet);
      const proxyMode = await askAgent("/proxyMode", { ...at, port }, quiet).catch(() => undefined);
      const livez = await askAgent("/livez", { ...at, port: HEALTH_PORT }, quiet).catch(() => undefined);
      return agentStatus({ metrics, proxyMode, livez });
    },
  };
}
