import type { LiveCluster, NodePorts } from "@fairlead/console";
import { type AgentPages, agentStatus } from "@fairlead/inspect";
import type { CommandInput } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure } from "../../frame/errors.ts";
import type { AgentSetup } from "../../inputs/agent.ts";
import { runnerFor } from "../../node/access.ts";
import { askAgent } from "../../node/agent-endpoint.ts";
import { nodeAddresses } from "../../node/kernel-state.ts";
import { reportsOf } from "../verify/look.ts";
import type { consoleOptions } from "./options.ts";

type Values = CommandInput<typeof consoleOptions>["options"];

/** How the console looks at nodes: this one, or others as `--on` does. */
export function nodePorts(cluster: LiveCluster, setup: AgentSetup, options: Values, context: Context): NodePorts {
  // A page says itself how long something takes.
  const quiet: Context = { ...context, warn: () => {}, progress: (_what, work) => work() };
  const { kubeconfig, live } = options;
  const on = (node: string) => (live ? undefined : node);
  return {
    kernel: async (node) => {
      demandOwn(node, cluster, live);
      const runner = await runnerFor({ on: on(node), kubeconfig }, quiet);
      cluster.setAddresses(node, await nodeAddresses(runner));
      return cluster.withPlan(node, (planned) => reportsOf(planned, setup, { rules: undefined }, { ...quiet, runner }));
    },
    agent: async (node) => {
      demandOwn(node, cluster, live);
      const page = (path: string) =>
        askAgent(path, { on: on(node), kubeconfig, port: Number(options["metrics-port"] ?? 10_249) }, quiet);
      const metrics = await page("/metrics");
      const pages: AgentPages = { metrics, proxyMode: await page("/proxyMode").catch(() => undefined) };
      return agentStatus(pages);
    },
  };
}

/** @throws CommandFailure for a node whose kernel is not this host's */
function demandOwn(node: string, { nodeName }: LiveCluster, live: boolean): void {
  if (live && node !== nodeName) throw new CommandFailure(`only ${nodeName} is looked at: --live is this host`);
}
